//! Golden lines: every shape with its arguments, a success and a refusal, as the other program's output has them.

mod golden;

use std::sync::Arc;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::protocol::{DocumentStart, Done, Entry, Message, Position, Turn};

const AT: u64 = 1_700_000_000_000;

/// The lines of a conversation of these events, behind the message `go`.
fn lines(events: Vec<Event>, is_partial: bool, has_thinking: bool) -> (Vec<Value>, Value) {
    let session = SessionInfo {
        id: "s-1".to_owned(),
        workspace: "/w".into(),
        key: "env",
        permission: "default",
    };
    let mut stream = CursorStream::new(session, is_partial, has_thinking);
    let mut transcript = Transcript::default();
    let mut lines = vec![stream.init(Some("m"))];
    let events = std::iter::once(Event::UserMessage(Message::user("go"))).chain(events);
    for (nth, event) in events.enumerate() {
        let entry = Arc::new(Entry {
            position: Position(nth as u64 + 1),
            turn: Turn(1),
            at_ms: AT,
            event,
        });
        let moved = transcript.apply(&entry);
        let new = stream.take(&entry.event, moved.change, moved.exchange, AT, &transcript);
        lines.extend(new.iter().map(value));
    }
    let response = &transcript.exchanges.last().expect("there is a turn").response;
    (lines, value(&stream.result(response, 812, None, None)))
}

fn value(line: &LongJson) -> Value {
    serde_json::to_value(line).expect("it is JSON")
}

fn start(id: &str, kind: &str, metadata: Value) -> Event {
    Event::DocumentStart(DocumentStart {
        id: id.into(),
        kind: Kind::parse(kind),
        sequence: None,
        content: None,
        metadata: members(metadata),
    })
}

fn delta(id: &str, delta: &str) -> Event {
    Event::ContentDelta {
        document: id.into(),
        delta: delta.to_owned(),
    }
}

fn end(id: &str, content: Option<&str>, metadata: Value) -> Event {
    Event::DocumentEnd {
        document: id.into(),
        final_content: content.map(Into::into),
        metadata: members(metadata),
    }
}

fn text(id: &str, pieces: &[&str]) -> Vec<Event> {
    let mut events = vec![start(id, "text", json!({ "format": "markdown" }))];
    events.extend(pieces.iter().map(|it| delta(id, it)));
    events.push(end(id, Some(&pieces.concat()), json!({ "format": "markdown" })));
    events
}

fn whole(id: &str, kind: &str, content: Option<&str>, metadata: Value) -> Vec<Event> {
    vec![start(id, kind, json!({})), end(id, content, metadata)]
}

/// A call of a tool as our own agent writes it.
fn tool(id: &str, name: &str, arguments: Value, result: Value) -> Vec<Event> {
    let metadata =
        json!({ "toolName": name, "toolCallId": id, "arguments": arguments, "result": result, "duration_ms": 3 });
    vec![
        start(id, "tool_call", json!({ "toolName": name, "toolCallId": id })),
        Event::ToolCallArguments {
            document: id.into(),
            arguments,
        },
        Event::ToolResult {
            document: id.into(),
            result,
            duration_ms: Some(3),
        },
        end(id, None, metadata),
    ]
}

fn done() -> Event {
    Event::Done(Done {
        duration_ms: Some(812),
        id: Some("r-1".into()),
        ..Done::default()
    })
}

/// The two lines of the one call in `events`.
fn check(sentence: &str, events: Vec<Event>, id: &str, kind: &str, arguments: Value, result: Value) {
    let (lines, _) = lines(events, false, false);
    let wanted = |subtype: &str, body: Value| {
        json!({
            "type": "tool_call",
            "subtype": subtype,
            "call_id": id,
            "tool_call": { kind: body },
            "session_id": "s-1",
        })
    };
    let (started, completed) = if kind == "function" {
        let mut completed = members(arguments.clone());
        completed.insert("result".to_owned(), result);
        (arguments, Value::Object(completed))
    } else {
        (
            json!({ "args": arguments }),
            json!({ "args": arguments, "result": result }),
        )
    };
    let found: Vec<&Value> = lines.iter().filter(|it| it["type"] == "tool_call").collect();
    assert_eq!(
        found,
        [&wanted("started", started), &wanted("completed", completed)],
        "{sentence}"
    );
}

#[test]
fn a_sequence_is_line_for_line_what_the_other_program_prints() {
    let mut events = text("a", &["Reading ", "it first."]);
    let data = json!({ "content": "# Shop\n", "totalLines": 1 });
    events.extend(tool(
        "toolu_01",
        "read_file",
        json!({ "target_file": "README.md" }),
        json!({ "status": "success", "data": data }),
    ));
    events.extend(text("b", &["It is a shop."]));
    events.push(done());
    let (mut lines, result) = lines(events, false, false);
    lines.push(result);
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    assert_eq!(
        lines,
        [
            r#"{"type":"system","subtype":"init","apiKeySource":"env","cwd":"/w","session_id":"s-1","model":"m","permissionMode":"default"}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"go"}]},"session_id":"s-1"}"#,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Reading it first."}]},"session_id":"s-1"}"#,
            r#"{"type":"tool_call","subtype":"started","call_id":"toolu_01","tool_call":{"readToolCall":{"args":{"path":"README.md"}}},"session_id":"s-1"}"#,
            r##"{"type":"tool_call","subtype":"completed","call_id":"toolu_01","tool_call":{"readToolCall":{"args":{"path":"README.md"},"result":{"success":{"content":"# Shop\n","isEmpty":false,"exceededLimit":false,"totalLines":1,"totalChars":7,"path":"/w/README.md"}}}},"session_id":"s-1"}"##,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"It is a shop."}]},"session_id":"s-1"}"#,
            r#"{"type":"result","subtype":"success","duration_ms":812,"duration_api_ms":812,"is_error":false,"result":"Reading it first.It is a shop.","session_id":"s-1","request_id":"r-1"}"#,
        ]
    );
}

#[test]
fn pieces_come_as_they_are_said_then_each_segment_once() {
    let mut events = text("a", &["Reading ", "it."]);
    events.extend(tool(
        "c",
        "grep",
        json!({ "pattern": "x" }),
        json!({ "status": "success", "data": "" }),
    ));
    events.extend(text("b", &["It ", "is."]));
    events.push(done());
    let (lines, _) = lines(events, true, false);
    let assistant: Vec<(&str, bool, bool)> = lines
        .iter()
        .filter(|it| it["type"] == "assistant")
        .map(|it| {
            (
                it["message"]["content"][0]["text"].as_str().expect("a text"),
                it.get("timestamp_ms") == Some(&json!(AT)),
                it.get("model_call_id").is_some(),
            )
        })
        .collect();
    assert_eq!(
        assistant,
        [
            ("Reading", true, false),
            (" it.", true, false),
            ("Reading it.", true, true),
            ("It", true, false),
            (" is.", true, false),
            ("It is.", false, false),
        ]
    );
}

#[test]
fn thinking_is_told_to_who_asks() {
    let events = || {
        let mut events = vec![
            Event::ThinkingDelta { delta: "Hm".into() },
            Event::ThinkingDelta { delta: "m.".into() },
        ];
        events.extend(text("a", &["Yes."]));
        events.push(done());
        events
    };
    let kinds = |lines: &[Value]| -> Vec<String> {
        let kind = |it: &Value| format!("{} {}", it["type"], it.get("subtype").unwrap_or(&Value::Null));
        lines.iter().skip(2).map(kind).map(|it| it.replace('"', "")).collect()
    };
    let (told, _) = lines(events(), false, true);
    assert_eq!(
        kinds(&told),
        [
            "thinking delta",
            "thinking delta",
            "thinking completed",
            "assistant null"
        ]
    );
    assert_eq!(told[2]["text"], "Hm");
    let (untold, _) = lines(events(), false, false);
    assert_eq!(kinds(&untold), ["assistant null"]);
}

fn good(data: Value) -> Value {
    json!({ "status": "success", "data": data })
}

fn bad(text: &str) -> Value {
    json!({ "status": "error", "data": text })
}

#[test]
fn reading_and_searching() {
    check(
        "a part of a file",
        tool(
            "c",
            "read_file",
            json!({ "target_file": "a.rs", "offset": 2, "limit": 1 }),
            good(json!({ "content": "b\n", "startLine": 2, "endLine": 2, "totalLines": 9, "fileSize": 20 })),
        ),
        "c",
        "readToolCall",
        json!({ "path": "a.rs", "offset": 2, "limit": 1 }),
        json!({ "success": {
            "content": "b\n", "isEmpty": false, "exceededLimit": false, "totalLines": 9, "totalChars": 2,
            "fileSize": 20, "path": "/w/a.rs", "readRange": { "startLine": 2, "endLine": 2 },
        } }),
    );
    check(
        "a file that is not there",
        tool(
            "c",
            "read_file",
            json!({ "target_file": "a.rs" }),
            bad("`a.rs` does not exist"),
        ),
        "c",
        "readToolCall",
        json!({ "path": "a.rs" }),
        json!({ "error": { "path": "a.rs", "error": "`a.rs` does not exist" } }),
    );
    check(
        "lines that match",
        tool(
            "c",
            "grep",
            json!({ "pattern": "fn", "path": "src", "-i": true, "output_mode": "content", "head_limit": 5 }),
            good(json!({ "mode": "content", "matches": [
                { "filePath": "src/a.rs", "line": 1, "text": "fn a() {}" },
                { "filePath": "src/a.rs", "line": 3, "text": "fn b() {}" },
                { "filePath": "src/b.rs", "line": 2, "text": "fn c() {}" },
            ] })),
        ),
        "c",
        "grepToolCall",
        json!({ "pattern": "fn", "path": "src", "outputMode": "content", "caseInsensitive": true, "headLimit": 5 }),
        json!({ "success": { "pattern": "fn", "path": "src", "outputMode": "content", "workspaceResults": { "/w": { "content": { "matches": [
            { "file": "src/a.rs", "matches": [
                { "lineNumber": 1, "content": "fn a() {}", "contentTruncated": false, "isContextLine": false },
                { "lineNumber": 3, "content": "fn b() {}", "contentTruncated": false, "isContextLine": false },
            ] },
            { "file": "src/b.rs", "matches": [
                { "lineNumber": 2, "content": "fn c() {}", "contentTruncated": false, "isContextLine": false },
            ] },
        ] } } } } }),
    );
    check(
        "files that match",
        tool(
            "c",
            "grep",
            json!({ "pattern": "fn", "output_mode": "files_with_matches" }),
            good(json!({ "mode": "files_with_matches", "matches": [{ "filePath": "src/a.rs" }], "fileCount": 1 })),
        ),
        "c",
        "grepToolCall",
        json!({ "pattern": "fn", "outputMode": "files_with_matches" }),
        json!({ "success": { "pattern": "fn", "path": "", "outputMode": "files_with_matches",
            "workspaceResults": { "/w": { "files": { "files": ["src/a.rs"], "totalFiles": 1 } } } } }),
    );
    check(
        "names of files",
        tool(
            "c",
            "glob_file_search",
            json!({ "glob_pattern": "*.rs", "target_directory": "src" }),
            good(json!({ "files": ["src/a.rs"], "totalFiles": 1, "truncated": false })),
        ),
        "c",
        "globToolCall",
        json!({ "globPattern": "*.rs", "targetDirectory": "src" }),
        json!({ "success": { "pattern": "*.rs", "path": "/w/src", "totalFiles": 1, "files": ["src/a.rs"],
            "clientTruncated": false, "ripgrepTruncated": false } }),
    );
    check(
        "a folder",
        tool(
            "c",
            "list_dir",
            json!({ "target_directory": ".", "ignore_globs": ["*.o"] }),
            good(json!({ "entries": ["src/", "src/a.rs", "README.md", "[3 files: 3 *.o]"] })),
        ),
        "c",
        "lsToolCall",
        json!({ "path": ".", "ignore": ["*.o"], "toolCallId": "c" }),
        json!({ "success": { "directoryTreeRoot": {
            "absPath": "/w",
            "childrenDirs": [{
                "absPath": "/w/src", "childrenDirs": [], "childrenFiles": [{ "name": "a.rs" }],
                "childrenWereProcessed": true, "fullSubtreeExtensionCounts": { ".rs": 1 }, "numFiles": 1,
            }],
            "childrenFiles": [{ "name": "README.md" }],
            "childrenWereProcessed": true,
            "fullSubtreeExtensionCounts": { ".md": 1, ".rs": 1 },
            "numFiles": 1,
        } } }),
    );
    check(
        "a search by meaning",
        tool(
            "c",
            "codebase_search",
            json!({ "query": "total?", "target_directories": ["src"], "explanation": "why" }),
            good(json!({ "chunks": [{ "filePath": "a\"<.rs", "startLine": 1, "endLine": 2, "text": "fn total()" }] })),
        ),
        "c",
        "semSearchToolCall",
        json!({ "query": "total?", "targetDirectories": ["src"], "explanation": "why" }),
        json!({ "success": { "results":
            "<search_result path=\"a&quot;&lt;.rs\" startLine=\"1\" endLine=\"2\">\nfn total()\n</search_result>\n" } }),
    );
    check(
        "what is wrong with a file",
        tool(
            "c",
            "read_lints",
            json!({ "paths": ["a.rs"] }),
            good(json!({ "fileDiagnostics": [{ "filePath": "a.rs", "diagnostics": [
                { "line": 3, "column": 5, "severity": "error", "message": "no", "source": "rustc", "code": "E1" },
            ] }] })),
        ),
        "c",
        "readLintsToolCall",
        json!({ "paths": ["a.rs"] }),
        json!({ "success": { "fileDiagnostics": [{ "path": "a.rs", "diagnostics": [{
            "severity": "error",
            "range": { "start": { "line": 2, "character": 4 }, "end": { "line": 2, "character": 4 } },
            "message": "no", "source": "rustc", "code": "E1",
        }] }] } }),
    );
    check(
        "a page",
        tool(
            "c",
            "web_fetch",
            json!({ "url": "https://x.example" }),
            good(json!({ "url": "https://x.example/", "markdown": "# X" })),
        ),
        "c",
        "webFetchToolCall",
        json!({ "url": "https://x.example", "toolCallId": "c" }),
        json!({ "success": { "url": "https://x.example/", "markdown": "# X" } }),
    );
    check(
        "a page that did not come",
        tool(
            "c",
            "web_fetch",
            json!({ "url": "https://x.example" }),
            bad("no answer"),
        ),
        "c",
        "webFetchToolCall",
        json!({ "url": "https://x.example", "toolCallId": "c" }),
        json!({ "error": { "url": "https://x.example", "error": "no answer" } }),
    );
}

#[test]
fn what_was_refused_says_why() {
    let metadata = |name: &str, arguments: Value| {
        json!({ "toolName": name, "toolCallId": "c", "arguments": arguments, "state": "rejected", "reason": "no rule",
            "result": { "status": "error", "data": "Error [TOOL_REJECTED]: no rule" } })
    };
    check(
        "a page",
        whole(
            "a",
            "tool_call",
            None,
            metadata("web_fetch", json!({ "url": "https://x.example" })),
        ),
        "c",
        "webFetchToolCall",
        json!({ "url": "https://x.example", "toolCallId": "c" }),
        json!({ "rejected": { "url": "https://x.example", "reason": "no rule" } }),
    );
    check(
        "a file elsewhere",
        whole(
            "a",
            "tool_call",
            None,
            metadata("read_file", json!({ "target_file": "/etc/x" })),
        ),
        "c",
        "readToolCall",
        json!({ "path": "/etc/x" }),
        json!({ "rejected": { "path": "/etc/x", "reason": "no rule" } }),
    );
    check(
        "somebody else's tool",
        whole("a", "tool_call", None, metadata("docs__find", json!({ "q": 1 }))),
        "c",
        "mcpToolCall",
        json!({ "name": "docs-find", "args": { "q": 1 }, "toolCallId": "c", "providerIdentifier": "docs", "toolName": "find" }),
        json!({ "rejected": { "reason": "no rule" } }),
    );
    check(
        "a command",
        whole(
            "a",
            "terminal_command",
            None,
            json!({ "command": "git push", "workingDirectory": "/w", "toolCallId": "c",
            "exitCode": null, "output": "", "state": "rejected", "reason": "no rule" }),
        ),
        "c",
        "shellToolCall",
        json!({ "command": "git push", "workingDirectory": "/w", "toolCallId": "c" }),
        json!({ "rejected": { "command": "git push", "workingDirectory": "/w", "reason": "no rule" } }),
    );
    for (operation, content, diff, kind, arguments) in [
        (
            "create",
            Some("x\n"),
            Value::Null,
            "writeToolCall",
            json!({ "path": "a", "fileText": "x\n", "toolCallId": "c" }),
        ),
        (
            "delete",
            None,
            Value::Null,
            "deleteToolCall",
            json!({ "path": "a", "toolCallId": "c" }),
        ),
        (
            "edit",
            Some("y"),
            json!({ "oldString": "x", "newString": "y", "startLine": 1, "endLine": 1 }),
            "editToolCall",
            json!({ "path": "a", "strReplace": { "oldText": "x", "newText": "y" } }),
        ),
    ] {
        let metadata = json!({ "filePath": "a", "operation": operation, "diff": diff, "toolCallId": "c",
            "applied": "rejected", "reason": "no rule" });
        check(
            operation,
            [whole("a", "file_edit", content, metadata), vec![done()]].concat(),
            "c",
            kind,
            arguments,
            json!({ "rejected": { "path": "a", "reason": "no rule" } }),
        );
    }
}

#[test]
fn commands() {
    let command = |state: &str, code: Value, output: &str| {
        json!({ "command": "make", "workingDirectory": "/w", "toolCallId": "c", "exitCode": code, "output": output,
            "duration_ms": 7, "permissions": [], "state": state })
    };
    let arguments = json!({ "command": "make", "workingDirectory": "/w", "toolCallId": "c" });
    let told = |code: Value, output: &str| {
        let mut told = members(
            json!({ "command": "make", "workingDirectory": "/w", "exitCode": code, "signal": "",
            "stdout": output, "stderr": "", "executionTime": 7, "interleavedOutput": output }),
        );
        if code.is_null() {
            told.shift_remove("exitCode");
        }
        Value::Object(told)
    };
    for (sentence, metadata, result) in [
        (
            "one that went well",
            command("completed", json!(0), "ok\n"),
            json!({ "success": told(json!(0), "ok\n"), "isBackground": false }),
        ),
        (
            "one that failed",
            command("completed", json!(2), "no\n"),
            json!({ "failure": told(json!(2), "no\n"), "isBackground": false }),
        ),
        (
            "one that goes on",
            command("background", Value::Null, ""),
            json!({ "success": told(Value::Null, ""), "isBackground": true }),
        ),
        (
            "one that took too long",
            command("timed_out", Value::Null, "..."),
            json!({ "failure": told(Value::Null, "..."), "isBackground": false }),
        ),
    ] {
        let mut events = vec![start(
            "a",
            "terminal_command",
            json!({ "command": "make", "workingDirectory": "/w", "toolCallId": "c", "state": "running" }),
        )];
        events.push(end("a", None, metadata));
        check(sentence, events, "c", "shellToolCall", arguments.clone(), result);
    }
}

fn hunk(nth: usize, of: usize, old: &str, new: &str, at: u64) -> Vec<Event> {
    let last = at + old.lines().count() as u64 - 1;
    whole(
        &format!("e{nth}"),
        "file_edit",
        Some(new),
        json!({ "filePath": "src/a.rs", "operation": "edit", "toolCallId": "c", "toolName": "search_replace", "applied": "applied",
            "diff": { "oldString": old, "newString": new, "startLine": at, "endLine": last },
            "hunk": { "index": nth, "count": of } }),
    )
}

#[test]
fn changes_of_files() {
    check(
        "one place",
        hunk(1, 1, "a\n", "b\nc\n", 4),
        "c",
        "editToolCall",
        json!({ "path": "src/a.rs", "strReplace": { "oldText": "a\n", "newText": "b\nc\n" } }),
        json!({ "success": { "path": "/w/src/a.rs", "linesAdded": 2, "linesRemoved": 1,
            "diffString": "@@ -4,1 +4,2 @@\n-a\n+b\n+c\n", "message": "Changed src/a.rs" } }),
    );
    check(
        "two places are one call",
        [hunk(1, 2, "a\n", "b\nc\n", 4), hunk(2, 2, "x\n", "", 9)].concat(),
        "c",
        "editToolCall",
        json!({ "path": "src/a.rs", "multiStrReplace": { "edits": [
            { "oldText": "a\n", "newText": "b\nc\n" }, { "oldText": "x\n", "newText": "" },
        ] } }),
        json!({ "success": { "path": "/w/src/a.rs", "linesAdded": 2, "linesRemoved": 2,
            "diffString": "@@ -4,1 +4,2 @@\n-a\n+b\n+c\n@@ -9,1 +9,0 @@\n-x\n", "message": "Changed src/a.rs" } }),
    );
    check(
        "a new file",
        whole(
            "a",
            "file_edit",
            Some("x\ny\n"),
            json!({ "filePath": "n", "operation": "create", "toolCallId": "c" }),
        ),
        "c",
        "writeToolCall",
        json!({ "path": "n", "fileText": "x\ny\n", "toolCallId": "c" }),
        json!({ "success": { "path": "/w/n", "linesCreated": 2, "fileSize": 4 } }),
    );
    check(
        "a file that goes",
        whole(
            "a",
            "file_edit",
            None,
            json!({ "filePath": "n", "operation": "delete", "toolCallId": "c" }),
        ),
        "c",
        "deleteToolCall",
        json!({ "path": "n", "toolCallId": "c" }),
        json!({ "success": { "path": "/w/n", "message": "Deleted n" } }),
    );
    check(
        "a file that moves",
        whole(
            "a",
            "file_edit",
            None,
            json!({ "filePath": "n", "newFilePath": "m", "operation": "rename", "toolCallId": "c" }),
        ),
        "c",
        "editToolCall",
        json!({ "path": "n", "applyPatch": { "patchContent":
            "*** Begin Patch\n*** Update File: n\n*** Move to: m\n*** End Patch\n" } }),
        json!({ "success": { "path": "/w/n", "linesAdded": 0, "linesRemoved": 0, "diffString": "", "message": "Moved n to m" } }),
    );
    let failed = json!({ "filePath": "n", "operation": "edit", "diff": null, "toolCallId": "c", "toolName": "search_replace",
        "applied": "failed", "arguments": { "file_path": "n", "old_string": "x", "new_string": "y" } });
    let error = json!({ "errorCode": "EDIT_NO_MATCH", "source": "search_replace", "details": "Read it again." });
    check(
        "a change that could not be made takes its reason from the error behind it",
        [
            whole("a", "file_edit", None, failed),
            whole("b", "error", Some("not found"), error),
            vec![done()],
        ]
        .concat(),
        "c",
        "editToolCall",
        json!({ "path": "n", "strReplace": { "oldText": "x", "newText": "y" } }),
        json!({ "error": { "path": "n", "error": "not found\nRead it again." } }),
    );
}

#[test]
fn files_of_one_patch_are_calls_of_their_own() {
    let edit = |id: &str, path: &str| {
        whole(
            id,
            "file_edit",
            Some("x"),
            json!({ "filePath": path, "operation": "create", "toolCallId": "c" }),
        )
    };
    let (lines, _) = lines([edit("a", "one"), edit("b", "two")].concat(), false, false);
    let ids: Vec<&Value> = lines.iter().filter_map(|it| it.get("call_id")).collect();
    assert_eq!(ids, ["c", "c", "c:1", "c:1"]);
}

#[test]
fn plans_todos_tasks_and_the_tools_of_others() {
    let stamp = AT.to_string();
    let todo = json!({ "id": "t", "content": "Do", "status": "TODO_STATUS_IN_PROGRESS", "createdAt": stamp,
        "updatedAt": stamp, "dependencies": ["u"] });
    check(
        "todos",
        whole(
            "a",
            "todo_update",
            None,
            json!({ "todos": [
            { "id": "t", "content": "Do", "status": "in_progress", "dependencies": ["u"] },
        ], "merge": false, "toolCallId": "c" }),
        ),
        "c",
        "updateTodosToolCall",
        json!({ "todos": [todo], "merge": false }),
        json!({ "success": { "totalCount": 1, "todos": [todo], "wasMerge": false } }),
    );
    check(
        "a plan",
        whole(
            "a",
            "plan",
            Some("# P"),
            json!({ "title": "P", "overview": "o", "toolCallId": "c", "todos": [
            { "id": "t", "content": "Do", "status": "pending", "dependencies": [] },
        ] }),
        ),
        "c",
        "createPlanToolCall",
        json!({ "name": "P", "overview": "o", "plan": "# P", "todos": [{ "id": "t", "content": "Do", "dependencies": [] }] }),
        json!({ "success": {} }),
    );
    check(
        "a task",
        tool(
            "c",
            "task",
            json!({ "description": "look", "prompt": "look at it", "subagent_type": "explore" }),
            good(json!({ "agentId": "a-1", "isBackground": false })),
        ),
        "c",
        "taskToolCall",
        json!({ "description": "look", "prompt": "look at it", "subagentType": { "kind": "explore" } }),
        json!({ "success": { "agentId": "a-1", "isBackground": false } }),
    );
    check(
        "a tool of a server",
        tool("c", "docs__find", json!({ "q": "x" }), good(json!("found"))),
        "c",
        "mcpToolCall",
        json!({ "name": "docs-find", "args": { "q": "x" }, "toolCallId": "c", "providerIdentifier": "docs", "toolName": "find" }),
        json!({ "success": { "content": [{ "text": { "text": "found" } }], "isError": false } }),
    );
    check(
        "a tool that the other program does not have",
        tool(
            "c",
            "web_search",
            json!({ "search_term": "x" }),
            good(json!({ "results": [] })),
        ),
        "c",
        "function",
        json!({ "name": "web_search", "arguments": "{\"search_term\":\"x\"}" }),
        json!({ "success": { "results": [] } }),
    );
    check(
        "a question that nobody answered",
        whole(
            "a",
            "clarification",
            Some("One thing"),
            json!({ "kind": "question", "toolCallId": "c", "outcome": "skipped",
            "questions": [{ "id": "q", "text": "Which?", "options": [] }] }),
        ),
        "c",
        "function",
        json!({ "name": "ask_question",
            "arguments": "{\"title\":\"One thing\",\"questions\":[{\"id\":\"q\",\"text\":\"Which?\",\"options\":[]}]}" }),
        json!({ "rejected": { "reason": "nobody answered" } }),
    );
}

#[test]
fn code_is_told_in_its_fence() {
    let mut events = text("a", &["See"]);
    events.push(start("b", "code_block", json!({ "language": "rust" })));
    events.push(delta("b", "let x;"));
    events.push(end("b", Some("let x;"), json!({ "language": "rust" })));
    events.push(done());
    let (lines, result) = lines(events, false, false);
    assert_eq!(result["result"], "See\n\n```rust\nlet x;\n```");
    assert_eq!(lines[2]["message"]["content"][0]["text"], result["result"]);
}

#[test]
fn what_was_refused_stands_in_the_result() {
    let mut events = whole(
        "a",
        "terminal_command",
        None,
        json!({ "command": "git push", "toolCallId": "c", "exitCode": null,
        "state": "rejected", "reason": "no rule", "missing": ["Shell(git push)"] }),
    );
    events.push(done());
    let (_, result) = lines(events, false, false);
    assert_eq!(
        result["permission_denials"],
        json!([{ "tool": "shell git push", "call_id": "c", "reason": "no rule", "missing": ["Shell(git push)"] }])
    );
}

fn document() -> impl Strategy<Value = (String, Vec<Event>)> {
    let kinds = vec![
        "text",
        "tool_call",
        "terminal_command",
        "file_edit",
        "code_block",
        "error",
        "plan",
        "todo_update",
        "x",
    ];
    (
        prop::sample::select(kinds),
        "[a-c]",
        "[a-z \n`]{0,12}",
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(kind, id, content, starts, ends)| {
            let mut events = Vec::new();
            if starts {
                events.push(start(&id, kind, json!({ "toolCallId": "c" })));
            }
            events.push(delta(&id, &content));
            if ends {
                events.push(end(
                    &id,
                    None,
                    json!({ "toolName": "grep", "command": "ls", "filePath": "f" }),
                ));
            }
            (id, events)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// However wild the source is: every call that starts is completed once, and the pieces of the text are the text.
    #[test]
    fn starts_and_ends_pair_and_pieces_join(documents in prop::collection::vec(document(), 0..12)) {
        let mut events: Vec<Event> = documents.into_iter().flat_map(|it| it.1).collect();
        events.push(done());
        let (partial, result) = lines(events.clone(), true, true);
        let count = |subtype: &str| partial.iter().filter(|it| it["type"] == "tool_call" && it["subtype"] == subtype).count();
        prop_assert_eq!(count("started"), count("completed"));
        let texts = |lines: &[Value], is_wanted: fn(&Value) -> bool| -> String {
            let said = lines.iter().filter(|it| it["type"] == "assistant" && is_wanted(it));
            said.filter_map(|it| it["message"]["content"][0]["text"].as_str()).collect()
        };
        let pieces = texts(&partial, |it| it.get("timestamp_ms").is_some() && it.get("model_call_id").is_none());
        prop_assert_eq!(&pieces, result["result"].as_str().expect("a text"));
        let (segments, _) = lines(events, false, false);
        prop_assert_eq!(texts(&segments, |_| true), pieces);
    }
}

#[test]
fn a_text_that_broke_off_is_in_no_result_once_something_came_instead() {
    let text = |id: &str, kind: &str, text: &str, cut: bool| {
        let metadata = if cut { json!({ "incomplete": true }) } else { json!({}) };
        [
            start(id, kind, json!({})),
            delta(id, text),
            end(id, Some(text), metadata),
        ]
    };
    let first = || text("a", "text", "First.", false).to_vec();
    let half = || text("b", "text", "\nI loo", true);
    let call = || {
        let call = json!({ "toolName": "grep", "toolCallId": "c", "result": { "status": "success", "data": "" } });
        [
            start("c", "tool_call", json!({ "toolName": "grep" })),
            end("c", None, call),
        ]
    };
    let cases: [(&str, Vec<Event>, &str, bool); 6] = [
        (
            "again",
            [first(), half().to_vec(), text("d", "text", "I look.", false).to_vec()].concat(),
            "First.\n\nI look.",
            false,
        ),
        (
            "a call",
            [first(), half().to_vec(), call().to_vec()].concat(),
            "First.",
            false,
        ),
        (
            "code",
            [
                text("b", "code_block", "let", true).to_vec(),
                text("d", "text", "So.", false).to_vec(),
            ]
            .concat(),
            "So.",
            false,
        ),
        ("the end", [first(), half().to_vec()].concat(), "First.\n\nI loo", true),
        (
            "a failure",
            [half().to_vec(), text("e", "error", "it broke", false).to_vec()].concat(),
            "I loo",
            true,
        ),
        ("blank", text("b", "text", " \n", true).to_vec(), "", false),
    ];
    for (name, events, says, is_incomplete) in cases {
        for is_partial in [false, true] {
            let (lines, result) = lines(
                [events.clone(), vec![Event::Done(Done::default())]].concat(),
                is_partial,
                false,
            );
            assert_eq!(result["result"], says, "{name}");
            assert_eq!(result["incomplete"] == true, is_incomplete, "{name}");
            let whole = |it: &&Value| it["type"] == "assistant" && it.get("timestamp_ms").is_none();
            let said: Vec<_> = lines
                .iter()
                .filter(whole)
                .map(|it| it["message"]["content"][0]["text"].clone())
                .collect();
            let is_said = said.iter().any(|it| {
                it.as_str()
                    .is_some_and(|it| it.contains("I loo") && !it.contains("I look"))
            });
            assert_eq!(is_said, is_incomplete, "{name}: {said:?}");
        }
    }
}
