//! What the model was told is journaled: the request after `--continue` begins with the bytes of the one before.

use std::{
    collections::VecDeque,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::print::{home, session_files, sheaf};

/// A server of one wire format: for every request for an answer the next of its answers, the last one again and again.
struct Server {
    address: std::net::SocketAddr,
    state: Arc<Shared>,
    // Dropping the runtime ends the server.
    _runtime: tokio::runtime::Runtime,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<VecDeque<String>>,
    /// Bodies of the requests for an answer, as they came.
    bodies: Mutex<Vec<String>>,
}

impl Server {
    fn with(answers: impl IntoIterator<Item = String>) -> Self {
        let state = Arc::new(Shared::default());
        state.answers.lock().expect("no test panics with it").extend(answers);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let app = Router::new().fallback(answer).with_state(Arc::clone(&state));
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind(("127.0.0.1", 0)))
            .expect("a port");
        let address = listener.local_addr().expect("it listens");
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self {
            address,
            state,
            _runtime: runtime,
        }
    }

    fn bodies(&self) -> Vec<String> {
        self.state.bodies.lock().expect("no test panics with it").clone()
    }
}

async fn answer(State(state): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let ends = [
        "chat/completions",
        "/responses",
        "/messages",
        ":streamGenerateContent",
        "/api/chat",
    ];
    let response = Response::builder();
    if !ends.iter().any(|it| path.ends_with(it)) {
        return response
            .status(StatusCode::NOT_FOUND)
            .body(Body::from("{}"))
            .expect("sound");
    }
    let body = axum::body::to_bytes(request.into_body(), 64 << 20)
        .await
        .expect("a body");
    let body = String::from_utf8(body.to_vec()).expect("it is text");
    state.bodies.lock().expect("no test panics with it").push(body);
    let mut answers = state.answers.lock().expect("no test panics with it");
    let answer = if answers.len() > 1 {
        answers.pop_front()
    } else {
        answers.front().cloned()
    };
    let kind = if path.ends_with("/api/chat") {
        "application/x-ndjson"
    } else {
        "text/event-stream"
    };
    let answer = Body::from(answer.unwrap_or_default());
    response.header("content-type", kind).body(answer).expect("sound")
}

/// A wire format: how its servers answer.
struct Format {
    kind: &'static str,
    model: &'static str,
    /// The member of a request with the messages.
    messages: &'static str,
    /// A thought with its proof, words, and a call with these arguments.
    calls: fn(&str, &Value) -> String,
    says: fn(&str) -> String,
}

/// Server-sent events with these data, each named by its `type` if it has one.
fn events(data: &[Value]) -> String {
    let event = |it: &Value| match it["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {it}\n\n"),
        None => format!("data: {it}\n\n"),
    };
    data.iter().map(event).collect()
}

fn chunk(delta: &Value, reason: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
}

fn anthropic(blocks: &[(Value, Value)], reason: &str) -> String {
    let usage = json!({ "input_tokens": 9, "output_tokens": 0 });
    let mut data = vec![
        json!({ "type": "message_start", "message": { "id": "m", "type": "message", "role": "assistant",
        "model": "claude-sonnet-4-5", "content": [], "usage": usage } }),
    ];
    for (at, (block, delta)) in blocks.iter().enumerate() {
        data.push(json!({ "type": "content_block_start", "index": at, "content_block": block }));
        for delta in delta.as_array().expect("a list") {
            data.push(json!({ "type": "content_block_delta", "index": at, "delta": delta }));
        }
        data.push(json!({ "type": "content_block_stop", "index": at }));
    }
    data.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 3 } }));
    data.push(json!({ "type": "message_stop" }));
    events(&data)
}

fn responses(items: &[Value]) -> String {
    let mut data = vec![json!({ "type": "response.created", "response": { "id": "r", "status": "in_progress" } })];
    for (at, item) in items.iter().enumerate() {
        data.push(json!({ "type": "response.output_item.added", "output_index": at, "item": item }));
        data.push(json!({ "type": "response.output_item.done", "output_index": at, "item": item }));
    }
    data.push(
        json!({ "type": "response.completed", "response": { "id": "r", "status": "completed", "output": items,
        "usage": { "input_tokens": 9, "output_tokens": 3, "total_tokens": 12 } } }),
    );
    events(&data)
}

fn message_item(text: &str) -> Value {
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
}

fn gemini(parts: &Value) -> String {
    events(&[
        json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12 } }),
    ])
}

const FORMATS: &[Format] = &[
    Format {
        kind: "openai",
        model: "scripted",
        messages: "messages",
        calls: |name, arguments| {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            let call = json!([{ "index": 0, "id": "call_1", "type": "function", "function": function }]);
            let thought = json!([{ "type": "reasoning.encrypted", "data": "c2VjcmV0", "id": "rs_1", "index": 0 }]);
            let data = [
                chunk(
                    &json!({ "reasoning": "Let me look.", "reasoning_details": thought }),
                    &Value::Null,
                ),
                chunk(&json!({ "content": "I look." }), &Value::Null),
                chunk(&json!({ "tool_calls": call }), &Value::Null),
                chunk(&json!({}), &"tool_calls".into()),
            ];
            events(&data) + "data: [DONE]\n\n"
        },
        says: |text| {
            let data = [
                chunk(&json!({ "content": text }), &Value::Null),
                chunk(&json!({}), &"stop".into()),
            ];
            events(&data) + "data: [DONE]\n\n"
        },
    },
    Format {
        kind: "openai-responses",
        model: "gpt-5.1",
        messages: "input",
        calls: |name, arguments| {
            let thought = json!({ "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "Look." }],
                "encrypted_content": "Z0FBQUFB" });
            let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name,
                "arguments": arguments.to_string(), "status": "completed" });
            responses(&[thought, message_item("I look."), call])
        },
        says: |text| responses(&[message_item(text)]),
    },
    Format {
        kind: "anthropic",
        model: "claude-sonnet-4-5",
        messages: "messages",
        calls: |name, arguments| {
            let thought = json!([{ "type": "thinking_delta", "thinking": "Let me look." },
                { "type": "signature_delta", "signature": "EqQBCkYIBxgCKkD" }]);
            let words = json!([{ "type": "text_delta", "text": "I look." }]);
            let written = json!([{ "type": "input_json_delta", "partial_json": arguments.to_string() }]);
            let call = json!({ "type": "tool_use", "id": "toolu_1", "name": name, "input": {} });
            let blocks = [
                (json!({ "type": "thinking", "thinking": "", "signature": "" }), thought),
                (json!({ "type": "text", "text": "" }), words),
                (call, written),
            ];
            anthropic(&blocks, "tool_use")
        },
        says: |text| {
            let words = json!([{ "type": "text_delta", "text": text }]);
            anthropic(&[(json!({ "type": "text", "text": "" }), words)], "end_turn")
        },
    },
    Format {
        kind: "gemini",
        model: "gemini-3-pro",
        messages: "contents",
        calls: |name, arguments| {
            let call =
                json!({ "functionCall": { "name": name, "args": arguments, "id": "g1" }, "thoughtSignature": "CiQB" });
            gemini(&json!([{ "text": "Let me look.", "thought": true }, { "text": "I look." }, call]))
        },
        says: |text| gemini(&json!([{ "text": text }])),
    },
    Format {
        kind: "ollama",
        model: "qwen3",
        messages: "messages",
        calls: |name, arguments| {
            let call = json!([{ "function": { "name": name, "arguments": arguments } }]);
            let lines = [
                json!({ "model": "qwen3", "message": { "role": "assistant", "content": "", "thinking": "Let me look." }, "done": false }),
                json!({ "model": "qwen3", "message": { "role": "assistant", "content": "I look." }, "done": false }),
                json!({ "model": "qwen3", "message": { "role": "assistant", "content": "", "tool_calls": call }, "done": false }),
                json!({ "model": "qwen3", "message": { "role": "assistant", "content": "" }, "done": true, "done_reason": "stop" }),
            ];
            lines.iter().map(|it| format!("{it}\n")).collect()
        },
        says: |text| {
            let said = json!({ "model": "qwen3", "message": { "role": "assistant", "content": text }, "done": false });
            let end = json!({ "model": "qwen3", "message": { "role": "assistant", "content": "" }, "done": true, "done_reason": "stop" });
            format!("{said}\n{end}\n")
        },
    },
];

/// A home with a workspace and a provider of this format.
struct Place {
    home: tempfile::TempDir,
    workspace: PathBuf,
}

impl Place {
    fn new(format: &Format, server: &Server, more: &str) -> Self {
        let home = home();
        let workspace = home.path().join("work");
        std::fs::create_dir_all(workspace.join("src")).expect("made");
        std::fs::create_dir_all(workspace.join(".cursor/rules")).expect("made");
        std::fs::write(workspace.join("README.md"), "# Shop\n").expect("written");
        std::fs::write(workspace.join("src/a.rs"), "fn one() {}\n".repeat(200)).expect("written");
        let rule = "---\nglobs: \"*.md\"\nalwaysApply: false\n---\nKeep documents short.\n";
        std::fs::write(workspace.join(".cursor/rules/docs.mdc"), rule).expect("written");
        let place = Self { home, workspace };
        place.configure(format, server, more);
        place
    }

    fn configure(&self, format: &Format, server: &Server, more: &str) {
        let folder = self.home.path().join(".config/sheaf");
        std::fs::create_dir_all(&folder).expect("folders");
        let base = match format.kind {
            "openai" | "openai-responses" => "/v1",
            _ => "",
        };
        let text = format!(
            "provider = 'mine'\nmodel = '{}'\n{more}\n[providers.mine]\nkind = '{}'\nbase_url = 'http://{}{base}'\napi_key = 'key-of-the-test-1'\n",
            format.model, format.kind, server.address
        );
        let file = folder.join("config.toml");
        std::fs::write(&file, text).expect("settings");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(file, private).expect("it is ours");
    }

    fn run(&self, arguments: &[&str]) -> (String, String) {
        let mut command: Command = sheaf(self.home.path());
        let workspace = self.workspace.as_os_str();
        command.arg("--trust").arg("--workspace").arg(workspace).args(arguments);
        let output = command.output().expect("it starts");
        let text = |it: Vec<u8>| String::from_utf8(it).expect("it is text");
        (text(output.stdout), text(output.stderr))
    }

    fn session(&self) -> PathBuf {
        let files = session_files(&self.home.path().join(".local/share/sheaf/sessions"));
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }
}

/// The members of a request, as bytes, without the marks up to which a server caches.
fn members(body: &str) -> Vec<(String, String)> {
    let body = body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let parsed: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(parsed.to_string(), body, "members are compared as they were sent");
    let members = parsed.as_object().expect("an object").iter();
    members.map(|(name, value)| (name.clone(), value.to_string())).collect()
}

/// The later request begins as the earlier one: the messages go on, everything else is the same.
fn assert_goes_on(what: &str, format: &Format, before: &str, after: &str) {
    let (before, after) = (members(before), members(after));
    assert_eq!(before.len(), after.len(), "{what}");
    for ((name, before), (also, after)) in before.iter().zip(&after) {
        assert_eq!(name, also, "{what}");
        if name == format.messages {
            let begin = before.strip_suffix(']').expect("a list");
            let same = begin
                .bytes()
                .zip(after.bytes())
                .take_while(|(one, other)| one == other)
                .count();
            let around = |it: &str| {
                String::from_utf8_lossy(&it.as_bytes()[same.saturating_sub(80)..])
                    .chars()
                    .take(300)
                    .collect::<String>()
            };
            assert!(
                after.starts_with(begin),
                "{what}: {}\n\nis not the beginning of\n\n{}",
                around(before),
                around(after)
            );
            assert!(after.len() > before.len(), "{what}");
        } else {
            assert_eq!(before, after, "{what}: {name}");
        }
    }
}

#[test]
fn the_request_after_continue_begins_with_the_bytes_of_the_one_before() {
    for format in FORMATS {
        let server = Server::with([
            (format.calls)("read_file", &json!({ "target_file": "README.md" })),
            (format.says)("A shop."),
        ]);
        let place = Place::new(format, &server, "");
        for words in ["what is @src/a.rs?", "and now?", "and then?"] {
            let is_first = words.starts_with("what");
            let arguments: &[&str] = if is_first {
                &["-p", words]
            } else {
                &["-p", words, "--continue"]
            };
            let (out, err) = place.run(arguments);
            assert!(out.ends_with("A shop.\n"), "{}: {out} {err}", format.kind);
        }
        let bodies = server.bodies();
        assert_eq!(bodies.len(), 4, "{}", format.kind);
        assert!(bodies[0].contains("fn one()"), "the attached file: {}", bodies[0]);
        assert!(
            bodies[1].contains("Keep documents short."),
            "the rule for the file that was read"
        );
        assert!(bodies[1].contains("1|# Shop"), "line numbers");
        for (at, pair) in bodies.windows(2).enumerate() {
            assert_goes_on(&format!("{} {at}", format.kind), format, &pair[0], &pair[1]);
        }
        let again = bodies[3].matches("Keep documents short.").count();
        assert_eq!(again, 1, "{}: a rule is said once", format.kind);
    }
}

#[test]
fn a_fork_begins_with_the_same_bytes() {
    let format = &FORMATS[2];
    let server = Server::with([
        (format.calls)("read_file", &json!({ "target_file": "README.md" })),
        (format.says)("A shop."),
    ]);
    let place = Place::new(format, &server, "");
    place.run(&["-p", "what is @src/a.rs?"]);
    let (out, err) = place.run(&["-p", "and now?", "--continue", "--fork"]);
    assert!(out.ends_with("A shop.\n"), "{out} {err}");
    let files = session_files(&place.home.path().join(".local/share/sheaf/sessions"));
    assert_eq!(files.len(), 2, "{files:?}");
    let bodies = server.bodies();
    assert_goes_on("a fork", format, &bodies[1], &bodies[2]);
}

#[test]
fn a_file_that_was_read_before_may_be_edited_after_continue() {
    // Chat completions drop the thoughts of earlier turns, in a running conversation, too.
    let format = &FORMATS[2];
    let edit = |old: &str, new: &str| {
        let arguments = json!({ "file_path": "README.md", "old_string": old, "new_string": new });
        (format.calls)("search_replace", &arguments)
    };
    let server = Server::with([
        (format.calls)("read_file", &json!({ "target_file": "README.md" })),
        (format.says)("A shop."),
        edit("# Shop", "# Store"),
        (format.says)("Done."),
        edit("# Market", "# Bazaar"),
        (format.says)("Read it first."),
    ]);
    let place = Place::new(format, &server, "");
    place.run(&["-p", "what is it?"]);
    place.run(&["-p", "call it a store", "--continue", "--force"]);
    let readme = place.workspace.join("README.md");
    let text = std::fs::read_to_string(&readme).expect("it is there");
    assert_eq!(text, "# Store\n", "{:?}", server.bodies().last());
    // What somebody has changed meanwhile is named, and must be read first.
    std::fs::write(&readme, "# Market\n").expect("written");
    place.run(&["-p", "call it a bazaar", "--continue", "--force"]);
    assert_eq!(std::fs::read_to_string(&readme).expect("it is there"), "# Market\n");
    let bodies = server.bodies();
    let (asked, refused) = (&bodies[4], &bodies[5]);
    assert!(
        asked.contains("have changed since you read them") && asked.contains("README.md"),
        "{asked}"
    );
    assert!(
        refused.contains("FILE_CHANGED") || refused.contains("changed since"),
        "{refused}"
    );
    assert_goes_on("an edit", format, &bodies[3], asked);
}

#[test]
fn what_has_changed_is_told_at_the_end_and_changed_tools_are_said() {
    let format = &FORMATS[0];
    let server = Server::with([(format.says)("Yes.")]);
    let place = Place::new(format, &server, "");
    place.run(&["-p", "one"]);
    place.configure(format, &server, "[prompt]\nappend = 'Speak like a pirate.'\n");
    let (_, err) = place.run(&["-p", "two", "--continue"]);
    assert!(!err.contains("cache lost"), "{err}");
    place.run(&["-p", "three", "--continue"]);
    let bodies = server.bodies();
    assert_goes_on("another prompt", format, &bodies[0], &bodies[1]);
    assert_goes_on("told once", format, &bodies[1], &bodies[2]);
    assert_eq!(bodies[0].matches("pirate").count(), 0);
    assert_eq!(bodies[2].matches("pirate").count(), 1, "{}", bodies[2]);
    place.configure(format, &server, "[tools.list_dir]\nenabled = false\n");
    let (_, err) = place.run(&["-p", "four", "--continue"]);
    assert!(err.contains("cache lost: tools changed: list_dir"), "{err}");
}

#[test]
fn a_session_without_records_is_told_from_its_documents_and_large_parts_are_stored_once() {
    let format = &FORMATS[0];
    let server = Server::with([
        (format.calls)("read_file", &json!({ "target_file": "README.md" })),
        (format.says)("A shop."),
    ]);
    let place = Place::new(format, &server, "");
    place.run(&["-p", "what is @src/a.rs?"]);
    for words in ["and now?", "and then?"] {
        place.run(&["-p", words, "--continue"]);
    }
    let session = place.session();
    let text = std::fs::read_to_string(&session).expect("a session");
    let attached = "150|fn one() {}";
    assert_eq!(text.matches(attached).count(), 1, "the attached file is stored once");
    let system = "You are the coding assistant inside sheaf";
    assert_eq!(text.matches(system).count(), 1, "the system prompt is stored once");
    let records = |it: &&str| it.contains(r#""event":"told""#);
    let told: usize = text.lines().filter(records).map(str::len).sum();
    let sent = server.bodies().last().map_or(0, String::len);
    assert!(told < 2 * sent, "{told} bytes of records for a request of {sent}");
    // As an older sheaf wrote it.
    let older: String = text
        .lines()
        .filter(|it| !records(it))
        .map(|it| format!("{it}\n"))
        .collect();
    std::fs::write(&session, older).expect("written");
    let (out, err) = place.run(&["-p", "and at last?", "--continue"]);
    assert!(out.ends_with("A shop.\n"), "{out} {err}");
    let last = server.bodies().last().cloned().expect("one");
    assert!(
        last.contains("read_file") && last.contains("# Shop") && last.contains("and then?"),
        "{last}"
    );
}

#[test]
fn nothing_of_the_record_leaves_the_machine() {
    let format = &FORMATS[0];
    let server = Server::with([(format.says)("Yes.")]);
    let place = Place::new(format, &server, "");
    let (out, _) = place.run(&["-p", "one", "--output-format", "events"]);
    assert!(
        out.contains("user_message") && !out.contains("You are the coding assistant"),
        "{out}"
    );
    let id = place.session();
    let id = id.file_stem().and_then(|it| it.to_str()).expect("an id").to_owned();
    for format in ["jsonl", "json", "html", "markdown"] {
        let (out, err) = export(&place, &id, format);
        assert!(out.contains("one"), "{format}: {out} {err}");
        assert!(!out.contains("You are the coding assistant"), "{format}: {out}");
    }
}

fn export(place: &Place, id: &str, format: &str) -> (String, String) {
    let mut command = sheaf(place.home.path());
    command.args(["sessions", "export", id, "--as", format]);
    let output = command.output().expect("it starts");
    let text = |it: Vec<u8>| String::from_utf8_lossy(&it).into_owned();
    (text(output.stdout), text(output.stderr))
}
