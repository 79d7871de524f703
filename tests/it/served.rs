//! The agent behind `sheaf serve`: what clients can have done, what they are asked, and what is kept.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    model::{Model, Script},
    print::{home, sheaf, with_model},
    pty::Start,
    serve::{Gateway, TOKEN, messages, request, tour},
};

/// A workspace of its own below the home, which is none.
fn at_work(home: &Path, model: &Model) -> Command {
    let workspace = home.join("work");
    fs::create_dir_all(workspace.join("src")).expect("a folder");
    fs::write(workspace.join("src/a.rs"), "fn a() {}\n").expect("a file");
    fs::write(workspace.join("notes.txt"), "secret plans\n").expect("a file");
    let mut command = with_model(home, model);
    command.current_dir(workspace);
    command
}

pub fn get(gateway: &Gateway, path: &str) -> crate::serve::Answer {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n",
        gateway.address
    );
    gateway.say(format!("{head}Connection: close\r\n\r\n").as_bytes())
}

/// A stream while it runs.
struct Stream {
    socket: TcpStream,
    seen: String,
}

impl Stream {
    fn open(gateway: &Gateway, body: &Value) -> Self {
        let mut socket = gateway.connect();
        let sent = request(gateway.address, "/api/v1/chat/completions", &body.to_string());
        socket.write_all(&sent).expect("it listens");
        Self {
            socket,
            seen: String::new(),
        }
    }

    /// Reads until `text` has come, and gives everything so far.
    fn until(&mut self, text: &str) -> &str {
        let mut bytes = self.seen.clone().into_bytes();
        let mut byte = [0];
        while !String::from_utf8_lossy(&bytes).contains(text) {
            assert_eq!(
                self.socket.read(&mut byte).unwrap_or(0),
                1,
                "no {text}: {}",
                String::from_utf8_lossy(&bytes)
            );
            bytes.push(byte[0]);
        }
        self.seen = String::from_utf8_lossy(&bytes).into_owned();
        &self.seen
    }

    fn id(&self) -> &str {
        let (_, rest) = self.seen.split_once("\"id\":\"").expect("an id");
        rest.split('"').next().expect("a name")
    }
}

fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.filter_map(|it| it["function"]["name"].as_str()).collect()
}

/// The result that the model read of its last call.
fn result(request: &Value) -> &str {
    let messages = request["messages"].as_array().expect("messages");
    let last = messages.iter().rev().find(|it| it["role"] == "tool").expect("a result");
    last["content"].as_str().expect("a text")
}

#[test]
fn a_request_says_which_tools_it_wants_and_for_what() {
    let home = home();
    let look = |path: &str| Script::Calls("", vec![("read_file", json!({ "target_file": path }))]);
    let model = Model::with([look("src/a.rs"), look("notes.txt"), Script::says("done")]);
    let gateway = Gateway::start(at_work(home.path(), &model), &[]);
    let answer = gateway.chat(&json!({
        "messages": messages(&["hi"]),
        "tools": ["read_file", "grep", "run_terminal_cmd"],
        "availableTools": { "read_file": { "enabled": true, "allowedPaths": ["src/"] }, "grep": { "enabled": false } },
    }));
    assert_eq!(answer.json()["status"], "completed", "{}", answer.body);
    let asked = model.requests();
    assert_eq!(offered(&asked[0]), ["read_file"]);
    assert!(result(&asked[1]).contains("fn a() {}"), "{}", result(&asked[1]));
    assert!(
        result(&asked[2]).contains("not among the paths"),
        "{}",
        result(&asked[2])
    );
    assert!(!asked[2].to_string().contains("secret plans"));

    let none = gateway.chat(&json!({ "messages": messages(&["hi"]), "tools": [] }));
    assert_eq!(none.status, 200);
    let asked = model.requests();
    assert!(offered(&asked[3]).is_empty(), "{:?}", offered(&asked[3]));
}

/// The request of the specification, as a client sends it that knows `edit_file` only.
fn specified(text: &str, more: &Value) -> Value {
    let mut body = json!({
        "model": "default", "mode": "agent", "stream": false, "messages": messages(&[text]),
        "tools": ["codebase_search", "read_file", "edit_file", "grep"],
        "availableTools": { "read_file": { "enabled": true }, "edit_file": { "enabled": true, "requireApproval": false } },
    });
    for (name, value) in more.as_object().expect("an object") {
        body["availableTools"]["edit_file"][name] = value.clone();
    }
    body
}

#[test]
fn the_request_of_the_specification_edits_within_its_limits() {
    let home = home();
    let write = |name: &str| Script::Calls("", vec![("write", json!({ "file_path": name, "contents": "new\n" }))]);
    let model = Model::with([
        write("src/b.rs"),
        write("other.txt"),
        Script::says("done"),
        write("src/c.rs"),
        Script::says("asked"),
        Script::says("off"),
    ]);
    let gateway = Gateway::start(at_work(home.path(), &model), &["--tools", "all"]);
    let answer = gateway
        .chat(&specified("go", &json!({ "allowedPaths": ["src/"] })))
        .json();
    assert_eq!(answer["metadata"]["finishReason"], "stop", "{answer}");
    let asked = model.requests();
    let tools = offered(&asked[0]);
    assert!(
        tools.contains(&"search_replace") && tools.contains(&"write"),
        "{tools:?}"
    );
    assert!(!tools.contains(&"run_terminal_cmd"), "{tools:?}");
    let work = home.path().join("work");
    let text = |name: &str| fs::read_to_string(work.join(name)).unwrap_or_default();
    assert_eq!(
        text("src/b.rs"),
        "new\n",
        "an edit in the allowed folder is made: {answer}"
    );
    assert_eq!(text("other.txt"), "", "and none outside of it");
    assert!(
        result(&asked[2]).contains("not among the paths"),
        "{}",
        result(&asked[2])
    );

    // Who wants to be asked and cannot be, gets no edit.
    gateway.chat(&specified("go", &json!({ "requireApproval": true })));
    assert_eq!(text("src/c.rs"), "");
    assert!(
        result(&model.requests()[4]).contains("nobody can give it"),
        "{}",
        result(&model.requests()[4])
    );

    gateway.chat(&specified("go", &json!({ "enabled": false })));
    let asked = model.requests();
    let tools = offered(&asked[5]);
    assert!(
        !tools.contains(&"write") && !tools.contains(&"search_replace"),
        "{tools:?}"
    );
}

#[test]
fn a_request_that_cannot_be_read_is_refused_and_never_becomes_agent_mode() {
    let home = home();
    let model = Model::with([Script::says("yes"), Script::says("yes")]);
    let gateway = Gateway::start(
        at_work(home.path(), &model),
        &["--tools", "all", "--set", "serve.models=[\"small\", \"large\"]"],
    );
    let with = |name: &str, value: Value| {
        let mut body = json!({ "messages": messages(&["hi"]) });
        body[name] = value;
        body
    };
    for (body, wanted) in [
        (with("mode", json!("read-only")), "agent, plan, ask, debug"),
        (
            with("availableTools", json!([{ "name": "grep" }])),
            "an entry for each tool",
        ),
        (
            with("availableTools", json!({ "edit_file": { "requiresApproval": true } })),
            "enabled, scope, allowedPaths, requireApproval",
        ),
        (with("streamOptions", json!("data")), "an object"),
        (with("model", json!("huge")), "small, large"),
    ] {
        let answer = gateway.chat(&body);
        assert_eq!(answer.status, 400, "{body}: {}", answer.body);
        assert!(answer.body.contains(wanted), "{wanted} in {}", answer.body);
    }
    let mut body = with("model", json!("huge"));
    body["messages"] = json!([{ "role": "user", "content": "hi" }]);
    let answer = gateway.post("/v1/chat/completions", &body);
    assert_eq!(
        (answer.status, &answer.json()["error"]["param"]),
        (400, &json!("model"))
    );
    assert!(model.requests().is_empty(), "nothing of it reached a model");
    assert_eq!(gateway.chat(&with("model", json!("small"))).status, 200);
    assert_eq!(gateway.chat(&with("mode", json!("ask"))).status, 200);
    assert_eq!(model.requests()[0]["model"], "small");
    let listed = get(&gateway, "/v1/models").json();
    let names: Vec<_> = listed["data"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(names, ["small", "large"]);
}

#[test]
fn a_stream_can_be_read_again_from_where_it_broke() {
    let home = home();
    let gateway = Gateway::replay(home.path(), &tour());
    let whole = gateway
        .chat(&json!({ "messages": messages(&["a", "b", "c"]), "stream": true }))
        .body;
    let id = whole.split("\"id\":\"").nth(1).and_then(|it| it.split('"').next());
    let path = format!("/api/v1/chat/responses/{}", id.expect("an id"));
    let head = |last: u32| {
        format!(
            "GET {path}/stream HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nLast-Event-ID: {last}\r\n\
             Connection: close\r\n\r\n",
            gateway.address
        )
    };
    let rest = gateway.say(head(2).as_bytes());
    assert_eq!(rest.status, 200, "{}", rest.body);
    assert!(
        !rest.body.contains("id: 2\n") && rest.body.contains("id: 3\n"),
        "{}",
        rest.body
    );
    assert!(rest.body.contains("event: done"), "{}", rest.body);
    let again = get(&gateway, &path).json();
    assert!(
        again["documents"].as_array().is_some_and(|it| !it.is_empty()),
        "{again} of {whole}"
    );
}

#[test]
fn the_model_hears_what_is_around_the_client() {
    let home = home();
    let model = Model::with([Script::says("yes")]);
    let gateway = Gateway::start(at_work(home.path(), &model), &[]);
    let context = json!({ "workspacePath": "/home/kim/shop", "openFiles": ["src/cart.rs"], "rules": ["be kind"] });
    gateway.chat(&json!({ "messages": messages(&["hi"]), "context": context, "mode": "ask" }));
    let asked = model.requests();
    let said = asked[0]["messages"].to_string();
    for part in [
        "<client_context>",
        "/home/kim/shop",
        "src/cart.rs",
        "be kind",
        "Ask mode is on",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn a_question_of_the_model_ends_an_answer_and_is_answered_by_the_next_message() {
    let home = home();
    let ask = Script::Calls(
        "One thing:",
        vec![(
            "ask",
            json!({ "title": "Before I go on", "questions": [{ "id": "db", "prompt": "Which database?",
                "options": [{ "id": "pg", "label": "Postgres" }, { "id": "lite", "label": "SQLite" }] }] }),
        )],
    );
    let model = Model::with([ask.clone(), Script::says("Postgres then."), ask, Script::says("never")]);
    let gateway = Gateway::start(at_work(home.path(), &model), &["--stateful"]);
    let first = gateway.chat(&json!({ "messages": messages(&["build it"]) })).json();
    assert_eq!(first["metadata"]["finishReason"], "awaiting_input", "{first}");
    let documents = first["documents"].as_array().expect("documents");
    let asked = documents.last().expect("one at least");
    assert_eq!(
        (&asked["type"], asked["metadata"].get("outcome")),
        (&json!("clarification"), None),
        "it is open"
    );
    assert_eq!(asked["metadata"]["questions"][0]["text"], "Which database?");
    let second = gateway.chat(&json!({
        "conversationId": first["conversationId"],
        "messages": [{ "role": "user", "content": "Which database? -> Postgres", "clarificationResponse":
            { "documentId": asked["id"], "outcome": "answered", "answers": [{ "questionId": "db", "selectedOptionIds": ["pg"] }] } }],
    }));
    assert_eq!(second.json()["documents"][0]["content"], "Postgres then.");
    let requests = model.requests();
    let heard = requests[1]["messages"].to_string();
    assert!(
        heard.contains("Which database? -> Postgres") && heard.contains("Their answer is the next message"),
        "{heard}"
    );

    // OpenAI's clients read the question as text.
    let body = json!({ "model": "default", "messages": [{ "role": "user", "content": "build it" }] });
    let answer = gateway.post("/v1/chat/completions", &body).json();
    let content = answer["choices"][0]["message"]["content"].as_str().expect("a text");
    assert_eq!(
        content,
        "One thing:\n\nBefore I go on\nWhich database?\n1. Postgres\n2. SQLite"
    );
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(model.requests().len(), 3, "the model is not asked to go on");
}

#[test]
fn code_that_a_call_closes_is_part_of_every_form_of_the_answer() {
    let home = home();
    let read = json!({ "target_file": "src/a.rs" });
    let model = Model::with([
        Script::Calls("Look:\n```rust\nlet x = 1;\n", vec![("read_file", read.clone())]),
        Script::says("Done."),
        Script::Calls("Look:\n```rust\nlet x = 1;\n", vec![("read_file", read.clone())]),
        Script::says("Done."),
        Script::Calls("Look:\n```rust\nlet x = 1;\n", vec![("read_file", read)]),
        Script::says("Done."),
    ]);
    let gateway = Gateway::start(at_work(home.path(), &model), &[]);
    for format in ["text", "json"] {
        let mut command = sheaf(home.path());
        let url = format!("http://{}", gateway.address);
        command.args(["-p", "--gateway", &url, "--output-format", format, "x"]);
        let output = command.env("SHEAF_TOKEN", TOKEN).output().expect("it starts");
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out.contains("let x = 1;") && out.contains("Done."), "{out}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let body = json!({ "model": "default", "messages": [{ "role": "user", "content": "x" }] });
    let answer = gateway.post("/v1/chat/completions", &body).json();
    let said = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
    assert!(said.contains("let x = 1;") && said.contains("Done."), "{said}");
}

#[test]
fn a_run_without_a_screen_ends_at_a_question_of_a_server_and_the_next_one_answers_it() {
    let home = home();
    let ask = json!({ "title": "Before I go on", "questions": [{ "id": "db", "prompt": "Which database?",
        "options": [{ "id": "pg", "label": "Postgres" }, { "id": "lite", "label": "SQLite" }] }] });
    let write = json!({ "file_path": "one.txt", "contents": "new\n" });
    let model = Model::with([
        Script::Calls("One thing:", vec![("ask", ask)]),
        Script::says("Postgres then."),
        Script::Calls("", vec![("write", write)]),
        Script::says("not made"),
    ]);
    let arguments = ["--tools", "all", "--set", "approvals.run=ask"];
    let gateway = Gateway::start(at_work(home.path(), &model), &arguments);
    let run = |arguments: &[&str]| {
        let mut command = sheaf(home.path());
        let url = format!("http://{}", gateway.address);
        command.args(["-p", "--gateway", &url, "--output-format", "json"]);
        command.env("SHEAF_TOKEN", TOKEN).args(arguments);
        let output = command.output().expect("it starts");
        let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        let result: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}"));
        (result, err, output.status.code())
    };
    let (result, err, code) = run(&["build it"]);
    assert_eq!(code, Some(4), "{err}");
    assert_eq!(result["finishReason"], "awaiting_input", "{result}");
    assert_eq!(result["questions"][0]["text"], "Which database?", "{result}");
    assert_eq!(result["questions"][0]["options"][0]["label"], "Postgres", "{result}");
    assert!(err.contains("question: Which database?"), "{err}");
    assert_eq!(model.requests().len(), 1, "the model is not asked to go on");
    let (result, err, code) = run(&["--continue", "Postgres"]);
    assert_eq!((code, &result["result"]), (Some(0), &json!("Postgres then.")), "{err}");
    assert_eq!(result.get("finishReason"), None, "{result}");
    let heard = model.requests()[1]["messages"].as_array().expect("messages")[1..].to_vec();
    let heard = Value::from(heard).to_string();
    assert!(heard.contains("Which database? -> Postgres"), "{heard}");
    assert!(!heard.contains("skipped") && !heard.contains("nobody"), "{heard}");
    // What needs a yes is refused by the server, and counts here, too.
    let (_, err, code) = run(&["write it"]);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.starts_with("refused: ") && err.contains("one.txt"), "{err}");
    assert!(
        err.contains("only the settings of the gateway") && !err.contains("--allow"),
        "{err}"
    );
}

#[test]
fn what_needs_a_yes_is_asked_of_the_client_that_can_give_it() {
    let home = home();
    let write = |name: &str| Script::Calls("", vec![("write", json!({ "file_path": name, "contents": "new\n" }))]);
    let model = Model::with([
        write("one.txt"),
        Script::says("made"),
        write("two.txt"),
        Script::says("not made"),
    ]);
    let arguments = ["--tools", "all", "--set", "approvals.run=ask"];
    let gateway = Gateway::start(at_work(home.path(), &model), &arguments);
    assert!(
        gateway.said.contains("write") && gateway.said.contains("run_terminal_cmd"),
        "{}",
        gateway.said
    );
    let listed = get(&gateway, "/v1/models").json();
    assert!(
        listed["tools"]
            .as_array()
            .is_some_and(|it| it.contains(&json!("write"))),
        "{listed}"
    );

    let mut stream = Stream::open(&gateway, &json!({ "messages": messages(&["go"]), "stream": true }));
    let said = stream.until("\"id\":\"allow_once\"").to_owned();
    assert!(
        said.contains("\"live_input\"") && !said.contains("allow_always"),
        "nothing is allowed for good: {said}"
    );
    assert!(!home.path().join("work/one.txt").exists());
    let input = format!("/api/v1/chat/responses/{}/input", stream.id());
    let (_, rest) = said.rsplit_once("event: document_start").expect("the question");
    let document = rest
        .split("\"id\":\"")
        .nth(1)
        .and_then(|it| it.split('"').next())
        .expect("a name");
    let yes = json!({ "documentId": document, "outcome": "answered",
                      "answers": [{ "questionId": "approval", "selectedOptionIds": ["allow_once"] }] });
    assert_eq!(gateway.post(&input, &yes).status, 202);
    stream.until("event: done");
    assert_eq!(
        fs::read_to_string(home.path().join("work/one.txt")).ok().as_deref(),
        Some("new\n")
    );

    // Nobody can say yes to what waits for no answer.
    let whole = gateway.chat(&json!({ "messages": messages(&["go"]) })).json();
    assert_eq!(whole["metadata"]["finishReason"], "stop", "{whole}");
    assert!(!home.path().join("work/two.txt").exists());
    let requests = model.requests();
    assert!(
        result(&requests[3]).contains("sheaf cannot ask for approval here"),
        "{}",
        result(&requests[3])
    );
}

#[test]
fn no_client_gets_out_of_the_sandbox_or_the_workspace() {
    let home = home();
    fs::write(home.path().join("diary.txt"), "dear diary\n").expect("a file");
    let run = json!({ "command": "touch ../out", "is_background": false, "required_permissions": ["all"] });
    let outside = json!({ "target_file": home.path().join("diary.txt") });
    let protected = json!({ "file_path": ".vscode/tasks.json", "contents": "{}" });
    let model = Model::with([
        Script::Calls("", vec![("run_terminal_cmd", run)]),
        Script::Calls("", vec![("read_file", outside)]),
        Script::Calls("", vec![("write", protected)]),
        Script::says("well"),
    ]);
    // Even rules of the user's that allow it do not, for somebody else.
    let arguments = ["--tools", "all", "--set", "approvals.allow=Shell(touch)"];
    let gateway = Gateway::start(at_work(home.path(), &model), &arguments);
    let mut stream = Stream::open(&gateway, &json!({ "messages": messages(&["go"]), "stream": true }));
    let said = stream.until("event: done").to_owned();
    assert!(!said.contains("clarification"), "nothing is asked: {said}");
    let requests = model.requests();
    for (nth, wanted) in [
        (1, "client of this gateway cannot"),
        (2, "a client of this gateway cannot allow it"),
        (3, "a client of this gateway cannot allow it"),
    ] {
        assert!(
            result(&requests[nth]).contains(wanted),
            "{nth}: {}",
            result(&requests[nth])
        );
    }
    assert!(!home.path().join("out").exists() && !home.path().join("work/.vscode").exists());
    assert!(!said.contains("dear diary"));
}

#[test]
fn a_plan_is_made_without_any_tool_that_changes_something() {
    let home = home();
    let plan = json!({ "name": "Totals", "overview": "Sums.", "plan": "# Totals", "todos": [{ "id": "a", "content": "Add" }] });
    let model = Model::with([Script::Calls("", vec![("create_plan", plan)]), Script::says("never")]);
    let gateway = Gateway::start(at_work(home.path(), &model), &[]);
    let answer = gateway
        .post("/api/v1/chat/plan", &json!({ "messages": messages(&["totals"]) }))
        .json();
    assert_eq!(answer["documents"][0]["type"], "plan", "{answer}");
    assert_eq!(answer["metadata"]["finishReason"], "awaiting_input");
}

#[test]
fn a_conversation_outlives_the_server() {
    let home = home();
    let model = Model::with([Script::says("two"), Script::says("four")]);
    let first = {
        let mut gateway = Gateway::start(at_work(home.path(), &model), &["--stateful"]);
        assert!(gateway.said.contains("conversations: stored in"), "{}", gateway.said);
        let answer = gateway.chat(&json!({ "messages": messages(&["one"]) })).json();
        gateway.terminate();
        gateway.child.wait().expect("it ends");
        answer
    };
    let gateway = Gateway::start(at_work(home.path(), &model), &["--stateful"]);
    let body = json!({ "messages": messages(&["three"]), "conversationId": first["conversationId"] });
    let second = gateway.chat(&body).json();
    assert_eq!(second["documents"][0]["content"], "four", "{second}");
    let requests = model.requests();
    let heard = requests[1]["messages"].to_string();
    assert!(
        heard.contains("one") && heard.contains("two") && heard.contains("three"),
        "{heard}"
    );
    // The user's own sessions are not where clients can name them.
    let sessions = home.path().join(".local/state/sheaf/sessions");
    assert!(fs::read_dir(&sessions).map_or(0, Iterator::count) == 0);
}

/// An answer that is too long for the memory of a stream: most of it lies in a file by the time it is read again.
#[test]
fn a_long_answer_is_resumed_anywhere_as_it_was() {
    let home = home();
    let pieces = (1..=4000).map(|it| format!("wörd{it}{}", if it % 12 == 0 { "\n" } else { " " }));
    let model = Model::with([Script::Says(pieces.clone().collect(), std::time::Duration::ZERO)]);
    let gateway = Gateway::start(at_work(home.path(), &model), &["--stateful"]);
    let whole = gateway
        .chat(&json!({ "messages": messages(&["one"]), "stream": true }))
        .body;
    let (_, rest) = whole.split_once("\"id\":\"").expect("an id");
    let id = rest.split('"').next().expect("an id");
    let stream = |dialect: &str, last: usize| {
        let head = format!(
            "GET /api/v1/chat/responses/{id}/stream?dialect={dialect} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Last-Event-ID: {last}\r\nConnection: close\r\n\r\n",
            gateway.address
        );
        gateway.say(head.as_bytes()).body
    };
    let events = whole.matches("\nid: ").count() + 1;
    assert!(events > 4000, "{events}");
    let said = pieces.collect::<String>();
    for dialect in ["named", "data"] {
        let all = stream(dialect, 0);
        if dialect == "named" {
            assert_eq!(all, whole);
        }
        for last in [1, 2, 3, 700, 2000, 3999, events - 3, events - 1] {
            let (_, after) = all.split_once(&format!("\nid: {}\n", last + 1)).expect("it is there");
            assert_eq!(
                stream(dialect, last),
                format!("id: {}\n{after}", last + 1),
                "{dialect} {last}"
            );
        }
    }
    let whole = get(&gateway, &format!("/api/v1/chat/responses/{id}")).json();
    assert_eq!(whole["documents"][0]["content"], said.trim_end());
    // The files have no names.
    let scratch = home.path().join(".local/state/sheaf/scratch");
    assert_eq!(fs::read_dir(&scratch).expect("it was used").count(), 0);
}

/// The schema of that name, with what it refers to.
fn schema(description: &Value, name: &str) -> jsonschema::Validator {
    let mut schema = json!({ "$ref": format!("#/components/schemas/{name}") });
    schema["components"] = description["components"].clone();
    jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn what_is_answered_is_what_is_described() {
    let home = home();
    let gateway = Gateway::replay(home.path(), &tour());
    let description = get(&gateway, "/openapi.json").json();
    let holds = |name: &str, value: &Value| {
        let schema = schema(&description, name);
        let problems: Vec<_> = schema
            .iter_errors(value)
            .map(|it| format!("{}: {it}", it.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{name}: {problems:?} in {value}");
    };
    for count in [1, 3] {
        let body = json!({ "model": "m", "messages": messages(&["a", "b", "c"][..count]) });
        holds("Request", &body);
        holds("AcceptedRequest", &body);
        holds("Response", &gateway.chat(&body).json());
        holds("Response", &gateway.post("/api/v1/chat/plan", &body).json());
        holds("ChatRequest", &body);
        holds("ChatCompletion", &gateway.post("/v1/chat/completions", &body).json());
    }
    for (path, name) in [
        ("/api/v1/chat/completions", "ErrorBody"),
        ("/v1/chat/completions", "OpenaiError"),
        ("/nothing", "ErrorBody"),
        ("/v1/nothing", "OpenaiError"),
    ] {
        holds(name, &gateway.post(path, &json!({})).json());
    }
    holds("Model", &get(&gateway, "/v1/models").json()["data"][0]);
    let question = json!({ "documentId": "doc_1", "outcome": "answered", "answers": [{ "questionId": "q" }] });
    holds("AcceptedAnswer", &question);
    assert!(
        !schema(&description, "AcceptedRequest").is_valid(&json!({ "messages": [] })),
        "a schema says no, too"
    );
}

#[test]
fn a_screen_opens_a_conversation_of_a_server_from_its_list() {
    let home = home();
    let model = Model::with([Script::says("two words"), Script::says("four words")]);
    let gateway = Gateway::start(at_work(home.path(), &model), &["--stateful"]);
    let answer = gateway.chat(&json!({ "messages": messages(&["say something"]) }));
    let conversation = answer.json()["conversationId"].as_str().expect("a name").to_owned();
    let url = format!("http://{}", gateway.address);

    let screen = Start::new(&["--attach", &url]).with("SHEAF_TOKEN", TOKEN).run();
    screen.wait_for("1 turn");
    screen.send("\r");
    screen.wait_gone("1 turn");
    screen.wait_for("two words");
    // Not the folder here, whose files are not touched.
    screen.wait_for(" sheaf at 127.0.0.1:");
    screen.send("and more\r");
    screen.wait_for("four words");
    let named = Start::new(&["--attach", &format!("{url}#{conversation}")]);
    let named = named.with("SHEAF_TOKEN", TOKEN).run();
    named.wait_for("four words");

    for (address, token, message) in [
        (format!("{url}#conv_none"), TOKEN, "has no conversation"),
        ("http://127.0.0.1:1".to_owned(), TOKEN, "cannot be reached"),
        (url, "wrong", "refuses the token"),
    ] {
        let refused = Start::new(&["--attach", &address]).with("SHEAF_TOKEN", token).run();
        refused.wait_for(message);
        assert_eq!(refused.exit(), 1, "{address}");
    }
}
