//! One row for each kind of call that the other program has: its line when it starts, and its lines when it went well, when
//! it did not and when it was refused, letter by letter. A second table says which members each kind may have there.

use pretty_assertions::assert_eq;

use super::*;

struct Row {
    kind: &'static str,
    /// The events of a call that went well, of one that did not, of one that was refused.
    events: [Vec<Event>; 3],
    arguments: &'static str,
    /// Results of the three, in the same order.
    results: [&'static str; 3],
}

/// A tool whose documents are calls.
fn call(name: &str, arguments: Value, data: Value) -> [Vec<Event>; 3] {
    [
        tool("c", name, arguments.clone(), good(data)),
        tool("c", name, arguments.clone(), bad("it broke")),
        refused(name, arguments),
    ]
}

fn refused(name: &str, arguments: Value) -> Vec<Event> {
    let metadata = json!({ "toolName": name, "toolCallId": "c", "arguments": arguments, "state": "rejected",
        "reason": "no rule allows it", "result": { "status": "error", "data": "Error [TOOL_REJECTED]: no" } });
    vec![
        start("c", "tool_call", json!({ "toolName": name, "toolCallId": "c" })),
        Event::ToolCallArguments {
            document: "c".into(),
            arguments,
        },
        end("c", None, metadata),
    ]
}

/// A change of a file, made, failed, refused.
fn change(content: Option<&str>, metadata: &Value) -> [Vec<Event>; 3] {
    ["applied", "failed", "rejected"].map(|applied| {
        let mut metadata = members(metadata.clone());
        metadata.insert("toolCallId".to_owned(), "c".into());
        metadata.insert("applied".to_owned(), applied.into());
        if applied == "rejected" {
            metadata.insert("reason".to_owned(), "no rule allows it".into());
        }
        let mut events = whole("a", "file_edit", content, Value::Object(metadata));
        if applied == "failed" {
            let why = json!({ "errorCode": "TOOL_FAILED", "source": "write", "details": "" });
            events.extend(whole("b", "error", Some("it broke"), why));
        }
        events.push(done());
        events
    })
}

fn command() -> [Vec<Event>; 3] {
    [
        ("completed", json!(0)),
        ("completed", json!(2)),
        ("rejected", Value::Null),
    ]
    .map(|(state, code)| {
        let start_metadata =
            json!({ "command": "make", "workingDirectory": "/w", "toolCallId": "c", "permissions": [] });
        let mut metadata = members(start_metadata.clone());
        metadata.extend(members(json!({ "exitCode": code, "state": state })));
        if state == "rejected" {
            metadata.extend(members(
                json!({ "output": "", "duration_ms": 0, "reason": "no rule allows it" }),
            ));
        } else {
            metadata.extend(members(json!({ "output": "made\n", "duration_ms": 7 })));
        }
        vec![
            start("c", "terminal_command", start_metadata),
            end("c", None, Value::Object(metadata)),
        ]
    })
}

const BROKE: &str = r#"{"error":{"error":"it broke"}}"#;
const REFUSED: &str = r#"{"rejected":{"reason":"no rule allows it"}}"#;

fn rows() -> Vec<Row> {
    let todos = json!([{ "id": "t", "content": "Do", "status": "in_progress", "dependencies": ["u"] }]);
    let kept = json!({ "todos": todos, "merge": false, "toolCallId": "c" });
    let planned = json!({ "title": "P", "overview": "o", "toolCallId": "c",
        "todos": [{ "id": "t", "content": "Do", "status": "pending", "dependencies": [] }] });
    let plan = json!({ "name": "P", "overview": "o", "plan": "# P", "todos": [{ "id": "t", "content": "Do", "dependencies": [] }] });
    let keep = json!({ "todos": todos, "merge": false });
    let diff = json!({ "oldString": "a\n", "newString": "b\nc\n", "startLine": 4, "endLine": 4 });
    vec![
        Row {
            kind: "readToolCall",
            events: call(
                "read_file",
                json!({ "target_file": "a.rs", "offset": 2, "limit": 1 }),
                json!({ "content": "b\n", "startLine": 2, "endLine": 2, "totalLines": 9, "fileSize": 20 }),
            ),
            arguments: r#"{"path":"a.rs","offset":2,"limit":1}"#,
            results: [
                r#"{"success":{"content":"b\n","isEmpty":false,"exceededLimit":false,"totalLines":9,"totalChars":2,"fileSize":20,"path":"/w/a.rs","readRange":{"startLine":2,"endLine":2}}}"#,
                r#"{"error":{"path":"a.rs","error":"it broke"}}"#,
                r#"{"rejected":{"path":"a.rs","reason":"no rule allows it"}}"#,
            ],
        },
        Row {
            kind: "writeToolCall",
            events: change(Some("x\ny\n"), &json!({ "filePath": "n", "operation": "create" })),
            arguments: r#"{"path":"n","fileText":"x\ny\n","toolCallId":"c"}"#,
            results: [
                r#"{"success":{"path":"/w/n","linesCreated":2,"fileSize":4}}"#,
                r#"{"error":{"path":"n","error":"it broke"}}"#,
                r#"{"rejected":{"path":"n","reason":"no rule allows it"}}"#,
            ],
        },
        Row {
            kind: "editToolCall",
            events: change(
                Some("b\nc\n"),
                &json!({ "filePath": "n", "operation": "edit", "diff": diff }),
            ),
            arguments: r#"{"path":"n","strReplace":{"oldText":"a\n","newText":"b\nc\n"}}"#,
            results: [
                r#"{"success":{"path":"/w/n","linesAdded":2,"linesRemoved":1,"diffString":"@@ -4,1 +4,2 @@\n-a\n+b\n+c\n","message":"Changed n"}}"#,
                r#"{"error":{"path":"n","error":"it broke"}}"#,
                r#"{"rejected":{"path":"n","reason":"no rule allows it"}}"#,
            ],
        },
        Row {
            kind: "deleteToolCall",
            events: change(None, &json!({ "filePath": "n", "operation": "delete" })),
            arguments: r#"{"path":"n","toolCallId":"c"}"#,
            results: [
                r#"{"success":{"path":"/w/n","message":"Deleted n"}}"#,
                r#"{"error":{"path":"n","error":"it broke"}}"#,
                r#"{"rejected":{"path":"n","reason":"no rule allows it"}}"#,
            ],
        },
        Row {
            kind: "shellToolCall",
            events: command(),
            arguments: r#"{"command":"make","workingDirectory":"/w","toolCallId":"c"}"#,
            results: [
                r#"{"success":{"command":"make","workingDirectory":"/w","exitCode":0,"signal":"","stdout":"made\n","stderr":"","executionTime":7,"interleavedOutput":"made\n"},"isBackground":false}"#,
                r#"{"failure":{"command":"make","workingDirectory":"/w","exitCode":2,"signal":"","stdout":"made\n","stderr":"","executionTime":7,"interleavedOutput":"made\n"},"isBackground":false}"#,
                r#"{"rejected":{"command":"make","workingDirectory":"/w","reason":"no rule allows it"}}"#,
            ],
        },
        Row {
            kind: "grepToolCall",
            events: call(
                "grep",
                json!({ "pattern": "fn", "path": "src", "glob": "*.rs", "output_mode": "content", "-B": 1, "-A": 2, "-i": true,
                    "type": "rust", "head_limit": 5, "multiline": false }),
                json!({ "mode": "content", "matches": [{ "filePath": "src/a.rs", "line": 1, "text": "fn a() {}" }] }),
            ),
            arguments: r#"{"pattern":"fn","path":"src","glob":"*.rs","outputMode":"content","contextBefore":1,"contextAfter":2,"caseInsensitive":true,"type":"rust","headLimit":5,"multiline":false}"#,
            results: [
                r#"{"success":{"pattern":"fn","path":"src","outputMode":"content","workspaceResults":{"/w":{"content":{"matches":[{"file":"src/a.rs","matches":[{"lineNumber":1,"content":"fn a() {}","contentTruncated":false,"isContextLine":false}]}]}}}}}"#,
                BROKE,
                REFUSED,
            ],
        },
        Row {
            kind: "globToolCall",
            events: call(
                "glob_file_search",
                json!({ "glob_pattern": "*.rs", "target_directory": "src" }),
                json!({ "files": ["src/a.rs"], "totalFiles": 1 }),
            ),
            arguments: r#"{"globPattern":"*.rs","targetDirectory":"src"}"#,
            results: [
                r#"{"success":{"pattern":"*.rs","path":"/w/src","totalFiles":1,"files":["src/a.rs"],"clientTruncated":false,"ripgrepTruncated":false}}"#,
                BROKE,
                REFUSED,
            ],
        },
        Row {
            kind: "lsToolCall",
            events: call(
                "list_dir",
                json!({ "target_directory": "src", "ignore_globs": ["*.o"] }),
                json!({ "entries": ["a.rs", "b/", "b/c.md"] }),
            ),
            arguments: r#"{"path":"src","ignore":["*.o"],"toolCallId":"c"}"#,
            results: [
                r#"{"success":{"directoryTreeRoot":{"absPath":"/w/src","childrenDirs":[{"absPath":"/w/src/b","childrenDirs":[],"childrenFiles":[{"name":"c.md"}],"childrenWereProcessed":true,"fullSubtreeExtensionCounts":{".md":1},"numFiles":1}],"childrenFiles":[{"name":"a.rs"}],"childrenWereProcessed":true,"fullSubtreeExtensionCounts":{".md":1,".rs":1},"numFiles":1}}}"#,
                BROKE,
                REFUSED,
            ],
        },
        Row {
            kind: "updateTodosToolCall",
            events: [
                whole("c", "todo_update", None, kept),
                tool("c", "todo_write", keep.clone(), bad("it broke")),
                refused("todo_write", keep),
            ],
            arguments: r#"{"todos":[{"id":"t","content":"Do","status":"TODO_STATUS_IN_PROGRESS","createdAt":"1700000000000","updatedAt":"1700000000000","dependencies":["u"]}],"merge":false}"#,
            results: [
                r#"{"success":{"totalCount":1,"todos":[{"id":"t","content":"Do","status":"TODO_STATUS_IN_PROGRESS","createdAt":"1700000000000","updatedAt":"1700000000000","dependencies":["u"]}],"wasMerge":false}}"#,
                BROKE,
                REFUSED,
            ],
        },
        Row {
            kind: "semSearchToolCall",
            events: call(
                "codebase_search",
                json!({ "query": "total?", "target_directories": ["src"], "explanation": "why" }),
                json!({ "chunks": [{ "filePath": "a.rs", "startLine": 1, "endLine": 2, "text": "fn total()" }] }),
            ),
            arguments: r#"{"query":"total?","targetDirectories":["src"],"explanation":"why"}"#,
            results: [
                r#"{"success":{"results":"<search_result path=\"a.rs\" startLine=\"1\" endLine=\"2\">\nfn total()\n</search_result>\n"}}"#,
                BROKE,
                REFUSED,
            ],
        },
        Row {
            kind: "mcpToolCall",
            events: call("docs__find", json!({ "q": "x" }), json!("found")),
            arguments: r#"{"name":"docs-find","args":{"q":"x"},"toolCallId":"c","providerIdentifier":"docs","toolName":"find"}"#,
            results: [
                r#"{"success":{"content":[{"text":{"text":"found"}}],"isError":false}}"#,
                BROKE,
                REFUSED,
            ],
        },
        Row {
            kind: "webFetchToolCall",
            events: call(
                "web_fetch",
                json!({ "url": "https://x.example" }),
                json!({ "url": "https://x.example/", "markdown": "# X" }),
            ),
            arguments: r#"{"url":"https://x.example","toolCallId":"c"}"#,
            results: [
                r##"{"success":{"url":"https://x.example/","markdown":"# X"}}"##,
                r#"{"error":{"url":"https://x.example","error":"it broke"}}"#,
                r#"{"rejected":{"url":"https://x.example","reason":"no rule allows it"}}"#,
            ],
        },
        Row {
            kind: "readLintsToolCall",
            events: call(
                "read_lints",
                json!({ "paths": ["a.rs"] }),
                json!({ "fileDiagnostics": [{ "filePath": "a.rs", "diagnostics": [
                    { "line": 3, "column": 5, "severity": "error", "message": "no", "source": "rustc", "code": "E1" },
                ] }] }),
            ),
            arguments: r#"{"paths":["a.rs"]}"#,
            results: [
                r#"{"success":{"fileDiagnostics":[{"path":"a.rs","diagnostics":[{"severity":"error","range":{"start":{"line":2,"character":4},"end":{"line":2,"character":4}},"message":"no","source":"rustc","code":"E1"}]}]}}"#,
                BROKE,
                REFUSED,
            ],
        },
        Row {
            kind: "createPlanToolCall",
            events: [
                whole("c", "plan", Some("# P"), planned),
                tool("c", "create_plan", plan.clone(), bad("it broke")),
                refused("create_plan", plan),
            ],
            arguments: r##"{"name":"P","overview":"o","plan":"# P","todos":[{"id":"t","content":"Do","dependencies":[]}]}"##,
            results: [r#"{"success":{}}"#, BROKE, REFUSED],
        },
        Row {
            kind: "taskToolCall",
            events: call(
                "task",
                json!({ "description": "look", "prompt": "look at it", "subagent_type": "explore" }),
                json!({ "agentId": "a-1", "isBackground": false }),
            ),
            arguments: r#"{"description":"look","prompt":"look at it","subagentType":{"kind":"explore"}}"#,
            results: [r#"{"success":{"agentId":"a-1","isBackground":false}}"#, BROKE, REFUSED],
        },
        Row {
            kind: "function",
            events: call("web_search", json!({ "search_term": "x" }), json!({ "results": [] })),
            arguments: r#""{\"search_term\":\"x\"}""#,
            results: [r#"{"success":{"results":[]}}"#, BROKE, REFUSED],
        },
    ]
}

#[test]
fn every_kind_starts_ends_fails_and_is_refused_as_the_other_program_says_it() {
    for row in rows() {
        let body = match row.kind {
            "function" => format!(r#""name":"web_search","arguments":{}"#, row.arguments),
            _ => format!(r#""args":{}"#, row.arguments),
        };
        let line = |subtype: &str, body: &str| {
            format!(
                r#"{{"type":"tool_call","subtype":"{subtype}","call_id":"c","tool_call":{{"{}":{{{body}}}}},"session_id":"s-1"}}"#,
                row.kind
            )
        };
        for (events, result) in row.events.into_iter().zip(row.results) {
            let (lines, _) = lines(events, false, false);
            let found: Vec<_> = lines
                .iter()
                .filter(|it| it["type"] == "tool_call")
                .map(Value::to_string)
                .collect();
            let wanted = [
                line("started", &body),
                line("completed", &format!(r#"{body},"result":{result}"#)),
            ];
            assert_eq!(found, wanted, "{}", row.kind);
        }
    }
}

/// Optional members of the arguments, then required and optional members of a successful result.
const TABLE: &[(&str, &str, &str, &str)] = &[
    (
        "readToolCall",
        "path offset limit",
        "content isEmpty exceededLimit totalLines totalChars",
        "fileSize path readRange",
    ),
    (
        "writeToolCall",
        "path fileText toolCallId returnFileContentAfterWrite",
        "path linesCreated fileSize",
        "fileContentAfterWrite",
    ),
    (
        "editToolCall",
        "path strReplace multiStrReplace applyPatch streamContent",
        "path linesAdded linesRemoved diffString message",
        "beforeFullFileContent afterFullFileContent",
    ),
    ("deleteToolCall", "path toolCallId", "path message", "fileSize"),
    (
        "shellToolCall",
        "command workingDirectory timeout toolCallId",
        "exitCode signal stdout stderr executionTime",
        "command workingDirectory interleavedOutput",
    ),
    (
        "grepToolCall",
        "pattern path glob outputMode contextBefore contextAfter context caseInsensitive type headLimit offset multiline sort sortAscending",
        "pattern path outputMode workspaceResults",
        "",
    ),
    (
        "globToolCall",
        "globPattern targetDirectory",
        "files totalFiles clientTruncated ripgrepTruncated",
        "pattern path",
    ),
    ("lsToolCall", "path ignore toolCallId", "directoryTreeRoot", ""),
    ("updateTodosToolCall", "todos merge", "todos totalCount wasMerge", ""),
    (
        "semSearchToolCall",
        "query targetDirectories explanation",
        "results",
        "",
    ),
    (
        "mcpToolCall",
        "name args toolCallId providerIdentifier toolName",
        "content isError",
        "",
    ),
    ("webFetchToolCall", "url toolCallId", "url markdown", ""),
    ("readLintsToolCall", "paths", "fileDiagnostics", ""),
    (
        "createPlanToolCall",
        "plan name overview todos phases isProject",
        "",
        "",
    ),
    (
        "taskToolCall",
        "description prompt subagentType",
        "",
        "conversationSteps agentId isBackground durationMs resultSuffix backgroundReason transcriptPath",
    ),
];

#[test]
fn no_kind_is_missing_and_none_has_members_that_the_other_program_does_not_know() {
    let rows = rows();
    let mut kinds: Vec<_> = TABLE.iter().map(|it| it.0).collect();
    kinds.sort_unstable();
    let mut found: Vec<_> = rows.iter().map(|it| it.kind).filter(|it| *it != "function").collect();
    found.sort_unstable();
    assert_eq!(found, kinds);
    for row in rows.iter().filter(|it| it.kind != "function") {
        let (_, arguments, needed, more) = TABLE.iter().find(|it| it.0 == row.kind).expect("found above");
        let names = |text: &str| {
            text.split(' ')
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let read = |text: &str| members(serde_json::from_str(text).expect("JSON"));
        for name in read(row.arguments).keys() {
            assert!(names(arguments).contains(name), "{}: {name}", row.kind);
        }
        let [success, failed, refused] = row.results.map(read);
        let success = members(success["success"].clone());
        for name in names(needed) {
            assert!(success.contains_key(&name), "{}: {name} is missing", row.kind);
        }
        let known = [names(needed), names(more)].concat();
        assert!(success.keys().all(|it| known.contains(it)), "{}: {success:?}", row.kind);
        assert!(
            failed.contains_key("error") || failed.contains_key("failure"),
            "{}",
            row.kind
        );
        assert!(refused["rejected"]["reason"].is_string(), "{}", row.kind);
    }
}
