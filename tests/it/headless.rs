//! `sheaf -p` for programs: Cursor's formats, rules for one run, exit codes, conversations taken up again.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{
    model::{Model, Script, query},
    print::{home, session_files, sheaf, with_model},
};

pub struct Ran {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
}

impl Ran {
    /// Every line of standard output, which has to be JSON.
    pub fn lines(&self) -> Vec<Value> {
        let read = |it: &str| serde_json::from_str(it).unwrap_or_else(|error| panic!("{it}: {error}"));
        self.out.lines().map(read).collect()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {:?} {:?}", self.out, self.err))
    }
}

/// A workspace with two files.
pub fn workspace(home: &Path) -> PathBuf {
    let folder = home.join("work");
    std::fs::create_dir_all(folder.join("src")).expect("made");
    std::fs::write(folder.join("README.md"), "# Shop\n").expect("written");
    std::fs::write(folder.join("src/a.rs"), "fn one() {}\n").expect("written");
    folder.canonicalize().expect("it is there")
}

pub fn ask(home: &Path, model: &Model, arguments: &[&str]) -> Ran {
    let mut command = with_model(home, model);
    command.arg("--workspace").arg(workspace(home)).args(arguments);
    ran(command)
}

pub fn ran(mut command: Command) -> Ran {
    let output = command.output().expect("it starts");
    Ran {
        out: String::from_utf8(output.stdout).expect("it is text"),
        err: String::from_utf8(output.stderr).expect("it is text"),
        code: output.status.code(),
    }
}

/// `type subtype` of each line, calls with their kind and the key of their result.
fn gist(lines: &[Value]) -> Vec<String> {
    let word = |it: &Value, name: &str| it.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let line = |it: &Value| {
        let mut gist = word(it, "type");
        if gist == "tool_call" {
            let call = it["tool_call"].as_object().expect("an object");
            assert_eq!(call.len(), 1, "{it}");
            let (kind, body) = call.iter().next().expect("one member");
            let key = body.get("result").and_then(|it| it.as_object()?.keys().next().cloned());
            gist = format!("{kind} {}", key.unwrap_or(word(it, "subtype")));
        }
        gist
    };
    lines.iter().map(line).collect()
}

#[test]
fn one_object_for_an_answer_and_none_for_a_failure() {
    let home = home();
    let model = Model::with([Script::says("the answer")]);
    let arguments = [
        "-p",
        "x",
        "--output-format",
        "json",
        "--set",
        "models.scripted.price_in=1000",
        "--set",
        "models.scripted.price_out=1000",
    ];
    let ran = ask(home.path(), &model, &arguments);
    let mut object = ran.json();
    assert_eq!((ran.err.as_str(), ran.code), ("", Some(0)));
    let session = object["session_id"].take();
    let kept = session_files(&home.path().join(".local/share/sheaf/sessions"));
    assert_eq!(
        kept[0].file_stem().and_then(|it| it.to_str()),
        session.as_str(),
        "the session can be found again"
    );
    for (member, wanted) in [
        ("type", json!("result")),
        ("subtype", json!("success")),
        ("is_error", json!(false)),
        ("result", json!("the answer")),
        ("num_turns", json!(1)),
    ] {
        assert_eq!(object[member], wanted, "{member}");
    }
    let usage = |name: &str| object["usage"][name].as_f64().expect("a number");
    let dollars = (usage("inputTokens") + usage("outputTokens")) / 1000.0;
    let cost = object["total_cost_usd"].as_f64().expect("a cost");
    assert!((cost - dollars).abs() < 1e-9, "{cost} is not {dollars}");
    assert_eq!(object["duration_ms"], object["duration_api_ms"]);
    assert!(object["duration_ms"].is_u64() && object["request_id"].is_string());

    for format in ["json", "stream-json", "text"] {
        let model = Model::with([Script::Refuses(401, json!({ "error": { "message": "no such key" } }))]);
        let ran = ask(home.path(), &model, &["-p", "x", "--output-format", format]);
        assert_eq!(ran.code, Some(1), "{format}");
        assert!(ran.err.contains("no such key"), "{format}: {}", ran.err);
        assert!(!ran.out.contains("\"result\""), "{format}: {}", ran.out);
    }
}

#[test]
fn what_is_done_and_said_comes_line_by_line() {
    let home = home();
    let model = Model::with([
        Script::Calls(
            "I look.",
            vec![
                ("read_file", json!({ "target_file": "src/a.rs" })),
                ("read_file", json!({ "target_file": "none" })),
            ],
        ),
        Script::Calls(
            "I change.",
            vec![
                (
                    "search_replace",
                    json!({ "file_path": "src/a.rs", "old_string": "one", "new_string": "two" }),
                ),
                ("write", json!({ "file_path": "new", "contents": "x\n" })),
            ],
        ),
        Script::says("Done."),
    ]);
    let ran = ask(home.path(), &model, &["-p", "go", "--output-format", "stream-json"]);
    let lines = ran.lines();
    let (ends, calls): (Vec<String>, Vec<String>) = gist(&lines).into_iter().partition(|it| !it.contains("ToolCall"));
    assert_eq!(
        ends,
        ["system", "user", "assistant", "assistant", "assistant", "result"]
    );
    let mut sorted = calls;
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        [
            "editToolCall started",
            "editToolCall success",
            "readToolCall error",
            "readToolCall started",
            "readToolCall started",
            "readToolCall success",
            "writeToolCall started",
            "writeToolCall success",
        ]
    );
    assert_eq!(lines.last().expect("some")["result"], "I look.I change.Done.");
    assert_eq!(lines[0]["cwd"], json!(workspace(home.path())));
    assert_eq!(lines[0]["apiKeySource"], "env");
    assert_eq!(ran.code, Some(0));
    // The first assistant line is out before the first call, whatever the file system is doing.
    assert_eq!(lines[2]["message"]["content"][0]["text"], "I look.");
    let ids: std::collections::BTreeSet<_> = lines.iter().map(|it| it["session_id"].to_string()).collect();
    assert_eq!(ids.len(), 1);
    assert!(workspace(home.path()).join("new").exists());
}

#[test]
fn events_are_the_stream_and_nothing_is_lost() {
    let home = home();
    let model = Model::with([Script::says("one two")]);
    let ran = ask(home.path(), &model, &["-p", "x", "--output-format", "events"]);
    let lines = ran.lines();
    let names: Vec<_> = lines.iter().map(|it| it["event"].as_str().expect("a name")).collect();
    assert_eq!(names.first(), Some(&"user_message"));
    assert_eq!(names.last(), Some(&"done"));
    let text: String = lines
        .iter()
        .filter(|it| it["event"] == "content_delta")
        .map(|it| it["data"]["delta"].as_str().expect("a text"))
        .collect();
    assert_eq!(text, "one two");
}

/// What is asked for, what the command line says, whether it is done, and how the program ends.
#[test]
fn what_nobody_may_allow_is_not_done_and_said() {
    let remove = || ("delete_file", json!({ "target_file": "README.md" }));
    let fetch = || ("web_fetch", json!({ "url": "http://localhost:9/" }));
    for (sentence, call, arguments, code, missing) in [
        (
            "a deletion needs a yes",
            remove(),
            vec![],
            4,
            Some(json!(["Delete(./README.md)"])),
        ),
        ("which a rule gives", remove(), vec!["--allow", "Delete(*.md)"], 0, None),
        ("which --force gives", remove(), vec!["--force"], 0, None),
        ("as its other name does", remove(), vec!["--yolo"], 0, None),
        (
            "what is forbidden stays so, and is no missing permission",
            remove(),
            vec!["--force", "--deny", "Write(README.md)"],
            0,
            None,
        ),
        (
            "what is missing is named as the rule that allows it",
            fetch(),
            vec![],
            4,
            Some(json!(["WebFetch(localhost)"])),
        ),
        (
            "that rule allows it",
            fetch(),
            vec!["--allow", "WebFetch(localhost)"],
            0,
            None,
        ),
        (
            "reading elsewhere is refused without a rule",
            ("read_file", json!({ "target_file": "/usr/include/none.h" })),
            vec![],
            4,
            Some(json!(["Read(/usr/include/**)"])),
        ),
    ] {
        let home = home();
        let model = Model::with([Script::Calls("", vec![call]), Script::says("So be it.")]);
        let mut all = vec!["-p", "go", "--output-format", "json"];
        all.extend(arguments.iter().copied());
        let ran = ask(home.path(), &model, &all);
        let object = ran.json();
        assert_eq!(ran.code, Some(code), "{sentence}: {}", ran.err);
        let found = object.get("permission_denials").map(|it| it[0]["missing"].clone());
        assert_eq!(found.filter(|it| !it.is_null()), missing, "{sentence}");
        let is_there = home.path().join("work/README.md").exists();
        let is_kept = code == 4
            || arguments.contains(&"--deny")
            || !arguments
                .iter()
                .any(|it| matches!(*it, "--force" | "--yolo" | "Delete(*.md)"));
        assert_eq!(is_there, is_kept, "{sentence}");
        let is_denied = arguments.contains(&"--deny");
        assert_eq!(
            ran.err.contains("the rule Write(README.md) forbids"),
            is_denied,
            "{sentence}: {}",
            ran.err
        );
        if let Some(rule) = missing.as_ref().and_then(|it| it[0].as_str()) {
            assert!(
                ran.err.contains(&format!("--allow '{rule}'")),
                "{sentence}: {}",
                ran.err
            );
        }
    }
}

#[test]
fn the_first_line_names_the_origin_of_the_key() {
    let cases: [(&str, &[(&str, &str)], &str); 3] = [
        ("api_key = \"k\"\n", &[], "settings"),
        ("", &[("OPENAI_API_KEY", "k")], "env"),
        ("", &[], "none"),
    ];
    for (key, variables, origin) in cases {
        let home = home();
        let model = Model::with([Script::says("hi")]);
        let folder = home.path().join(".config/sheaf");
        std::fs::create_dir_all(&folder).expect("a folder");
        let url = format!("http://{}/v1", model.address);
        let settings = format!("provider = \"local\"\nmodel = \"m\"\n[providers.local]\nbase_url = \"{url}\"\n{key}");
        let settings = if variables.is_empty() { settings } else { String::new() };
        let file = folder.join("config.toml");
        std::fs::write(&file, settings).expect("written");
        // A key counts only in a file that nobody else can read.
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, private).expect("it is ours");
        let mut command = sheaf(home.path());
        command.args(["-p", "x", "--output-format", "stream-json"]);
        if !variables.is_empty() {
            command.env("OPENAI_BASE_URL", &url).env("OPENAI_MODEL", "m");
        }
        let output = command.envs(variables.iter().copied()).output().expect("it starts");
        let out = String::from_utf8_lossy(&output.stdout);
        let first: Value = serde_json::from_str(out.lines().next().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{error}: {out} {output:?}"));
        assert_eq!(first["apiKeySource"], origin, "{out}");
    }
}

#[test]
fn what_cannot_be_meant_is_wrong_usage_and_asks_nobody() {
    let home = home();
    let model = Model::with([Script::says("x")]);
    std::fs::write(home.path().join("text"), "no picture").expect("written");
    for (arguments, says) in [
        (vec!["--allow", "git push"], "did you mean `Shell(git push)`?"),
        (vec!["--deny", "Shell("], "--deny"),
        (vec!["--add-dir", "none"], "none is not a folder"),
        (vec!["--image", "none"], "--image"),
        (vec!["--image", "text"], "it is no PNG"),
        (vec!["--max-turns", "0"], "--max-turns"),
        (vec!["--output-schema", "none"], "--output-schema"),
        (vec!["--output-schema", "text"], "is not JSON"),
        (vec!["--stream-partial-output"], "stream-json"),
        (vec!["--include-thinking", "--output-format", "json"], "stream-json"),
        (vec!["--output-format", "yaml"], "yaml"),
        (vec!["--continue", "--resume=x"], "--resume"),
        (vec!["--provider", "none"], "unknown provider `none`"),
        (vec!["--set", "no.such=1"], "no.such"),
    ] {
        let mut all = vec!["-p", "x"];
        all.extend(&arguments);
        let ran = ask(home.path(), &model, &all);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(says), "{arguments:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{arguments:?}");
    }
    assert_eq!(model.requests(), Vec::<Value>::new());
}

#[test]
fn a_run_that_would_go_on_ends_at_its_limit_as_a_failure() {
    let home = home();
    let calls =
        (0..5).map(|nth| Script::Calls("", vec![("list_dir", json!({ "target_directory": format!("{nth}") }))]));
    let model = Model::with(calls);
    let ran = ask(
        home.path(),
        &model,
        &["-p", "x", "--max-turns", "2", "--output-format", "json"],
    );
    assert_eq!((ran.out.as_str(), ran.code), ("", Some(1)));
    assert!(ran.err.contains("MAX_TURNS"), "{}", ran.err);
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn another_folder_is_worked_in_when_it_is_named() {
    let home = home();
    let other = home.path().join("other");
    std::fs::create_dir(&other).expect("made");
    std::fs::write(other.join("note"), "from elsewhere\n").expect("written");
    let other = other.canonicalize().expect("it is there");
    let other = other.to_str().expect("it is text");
    let script = || {
        let call = ("read_file", json!({ "target_file": format!("{other}/note") }));
        Model::with([Script::Calls("", vec![call]), Script::says("ok")])
    };
    let model = script();
    let ran = ask(home.path(), &model, &["-p", "x", "--add-dir", other]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let heard = model.requests()[1]["messages"].to_string();
    assert!(heard.contains("from elsewhere"), "{heard}");
    let model = script();
    assert_eq!(ask(home.path(), &model, &["-p", "x"]).code, Some(4));
}

#[test]
fn a_picture_goes_with_the_message() {
    let home = home();
    let picture = home.path().join("p.png");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\n and more").expect("written");
    let model = Model::with([Script::says("nice")]);
    let ran = ask(
        home.path(),
        &model,
        &["-p", "x", "--image", picture.to_str().expect("it is text")],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let sent = model.requests()[0]["messages"].to_string();
    // The beginning of the bytes in base 64.
    assert!(sent.contains("data:image/png;base64,iVBORw0KGgog"), "{sent}");
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_again() {
    let home = home();
    let schema = home.path().join("schema.json");
    std::fs::write(
        &schema,
        r#"{ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } }"#,
    )
    .expect("written");
    let schema = schema.to_str().expect("it is text");
    let good = || Script::says("Here:\n\n```json\n{ \"n\": 7 }\n```");
    let bad = || Script::says("{ \"n\": \"seven\" }");

    let model = Model::with([bad(), good()]);
    let ran = ask(
        home.path(),
        &model,
        &["-p", "x", "--output-schema", schema, "--output-format", "json"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.json()["structured_output"], json!({ "n": 7 }));
    assert_eq!(ran.json()["result"], "{\"n\":7}");
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    let again = requests[1]["messages"].as_array().expect("a list").last().expect("one")["content"].to_string();
    assert!(
        again.contains("/n") && again.contains("integer"),
        "it hears why: {again}"
    );

    let model = Model::with([good()]);
    let ran = ask(home.path(), &model, &["-p", "x", "--output-schema", schema]);
    assert_eq!((ran.out.as_str(), ran.code), ("{\n  \"n\": 7\n}\n", Some(0)));

    let model = Model::with([bad()]);
    let ran = ask(home.path(), &model, &["-p", "x", "--output-schema", schema]);
    assert_eq!((ran.out.as_str(), ran.code), ("", Some(1)));
    assert_eq!(model.requests().len(), 3, "it is asked again a bounded number of times");
    assert!(ran.err.contains("does not fit"), "{}", ran.err);
}

#[test]
fn a_conversation_goes_on_with_its_calls_and_results() {
    let home = home();
    let model = Model::with([
        Script::Calls("I look.", vec![("read_file", json!({ "target_file": "README.md" }))]),
        Script::says("A shop."),
        Script::says("Again."),
    ]);
    let first = ask(home.path(), &model, &["-p", "what is it?", "--output-format", "json"]).json();
    let id = first["session_id"].as_str().expect("an id").to_owned();
    let resume = format!("--resume={id}");
    for arguments in [vec!["-p", "and now?", &resume], vec!["-p", "and now?", "--continue"]] {
        let mut all = arguments.clone();
        all.extend(["--output-format", "json"]);
        let ran = ask(home.path(), &model, &all);
        assert_eq!(
            (ran.json()["session_id"].as_str(), ran.code),
            (Some(id.as_str()), Some(0)),
            "{arguments:?}"
        );
        assert_eq!(ran.json()["result"], "Again.", "what was said before is not said again");
        let request = model.requests().last().cloned().expect("one");
        let messages = request["messages"].as_array().expect("a list").clone();
        let calls: Vec<_> = messages
            .iter()
            .filter_map(|it| it["tool_calls"][0].get("function"))
            .collect();
        assert_eq!(calls.len(), 1, "{messages:?}");
        assert_eq!(calls[0]["name"], "read_file");
        let read: Value = serde_json::from_str(calls[0]["arguments"].as_str().expect("a text")).expect("JSON");
        assert_eq!(read, json!({ "target_file": "README.md" }));
        let results: Vec<_> = messages.iter().filter(|it| it["role"] == "tool").collect();
        assert!(results[0]["content"].to_string().contains("# Shop"), "{results:?}");
        assert_eq!(
            query(messages.last().expect("one")["content"].as_str().expect("a text")),
            "and now?"
        );
    }
    assert_eq!(session_files(&home.path().join(".local/share/sheaf/sessions")).len(), 1);
    let ran = ask(home.path(), &model, &["-p", "x", "--resume=none"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("no conversation `none`"), "{}", ran.err);
}

#[test]
fn a_run_that_was_killed_goes_on_with_its_call_as_interrupted() {
    let home = home();
    let model = Model::with([
        Script::Calls("I look.", vec![("read_file", json!({ "target_file": "README.md" }))]),
        Script::Hangs(vec!["half an ".to_owned()]),
    ]);
    let mut command = with_model(home.path(), &model);
    command
        .arg("--workspace")
        .arg(workspace(home.path()))
        .args(["-p", "x", "--output-format", "stream-json"]);
    let mut child = command.spawn().expect("it starts");
    let folder = home.path().join(".local/share/sheaf/sessions");
    let is_kept = || {
        let files = if folder.exists() {
            session_files(&folder)
        } else {
            Vec::new()
        };
        files
            .iter()
            .any(|it| std::fs::read_to_string(it).is_ok_and(|it| it.contains("half an")))
    };
    while !is_kept() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let model = Model::with([Script::says("Again.")]);
    let ran = ask(home.path(), &model, &["-p", "go on", "--continue"]);
    assert_eq!((ran.out.as_str(), ran.code), ("Again.\n", Some(0)), "{}", ran.err);
    let messages = model.requests()[0]["messages"].to_string();
    assert!(
        messages.contains("half an") && messages.contains("# Shop"),
        "{messages}"
    );
    let kept = std::fs::read_to_string(&session_files(&folder)[0]).expect("it can be read");
    assert!(kept.contains(r#""finishReason":"interrupted""#), "{kept}");
}

#[test]
fn programs_made_for_the_other_command_line_find_what_they_call() {
    let home = home();
    let model = Model::with([Script::says("hello")]);
    let made = ask(home.path(), &model, &["status"]);
    assert_eq!(made.code, Some(2), "options stand behind a command");
    let task = |words: &[&str]| {
        let mut command = with_model(home.path(), &model);
        command.args(words);
        ran(command)
    };
    let status = task(&["status"]);
    assert_eq!(
        (status.out.as_str(), status.code),
        ("provider openai, scripted\n", Some(0))
    );
    let folder = workspace(home.path());
    let id = task(&["create-chat", &format!("--workspace={}", folder.display())]).out;
    let id = id.trim();
    let ran = ask(
        home.path(),
        &model,
        &[
            &format!("--resume={id}"),
            "--model=auto",
            "--trust",
            "--output-format",
            "json",
            "-p",
            "x",
        ],
    );
    assert_eq!((ran.json()["session_id"].as_str(), ran.code), (Some(id), Some(0)));
    assert_eq!(model.requests()[0]["model"], "scripted", "`auto` is no model");
}

#[test]
fn standard_input_alone_is_the_prompt_and_beside_one_an_attachment() {
    let home = home();
    let model = Model::with([Script::says("ok")]);
    for (arguments, whole) in [
        (vec!["-p"], "from a pipe"),
        (vec![], "from a pipe"),
        (vec!["-p", "look"], "look"),
    ] {
        let mut command = with_model(home.path(), &model);
        command.args(&arguments).stdin(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        child
            .stdin
            .take()
            .expect("it is piped")
            .write_all(b"from a pipe")
            .expect("it reads");
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        let requests = model.requests();
        let messages = requests.last().expect("one")["messages"]
            .as_array()
            .expect("a list")
            .clone();
        let content = messages.last().expect("one")["content"]
            .as_str()
            .expect("a text")
            .to_owned();
        assert!(
            query(&content).starts_with(whole) && content.contains("from a pipe"),
            "{content}"
        );
    }
}

#[test]
fn checkers_see_a_workspace_that_lies_in_a_temporary_folder() {
    // Commands have a /tmp of their own, and what only looks may not write the workspace.
    let home = tempfile::Builder::new().tempdir_in("/tmp").expect("made");
    let call = ("read_lints", json!({ "paths": ["README.md"] }));
    let model = Model::with([Script::Calls("", vec![call]), Script::says("ok")]);
    let checker = r#"lint.markdown=["sh", "-c", "echo README.md:1: error: it says $(cat README.md)"]"#;
    let ran = ask(
        home.path(),
        &model,
        &["-p", "x", "--force", "--trust", "--set", checker],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let heard = model.requests()[1]["messages"].to_string();
    assert!(heard.contains("README.md:1:1 error: it says # Shop"), "{heard}");
}

/// What a run does where nothing would hold its commands.
#[test]
fn without_a_sandbox_a_run_says_so_and_ends_with_its_own_code() {
    let command = || {
        Model::with([
            Script::Calls(
                "I run it.",
                vec![(
                    "run_terminal_cmd",
                    json!({ "command": "touch made", "is_background": false }),
                )],
            ),
            Script::says("Not run."),
        ])
    };
    let run = |tier: &str, arguments: &[&str]| {
        let home = home();
        let model = command();
        let mut sheaf = with_model(home.path(), &model);
        sheaf
            .env("SHEAF_SANDBOX_AT_MOST", tier)
            .arg("--workspace")
            .arg(workspace(home.path()))
            .args(["-p", "go"])
            .args(arguments);
        let ran = ran(sheaf);
        let is_made = workspace(home.path()).join("made").exists();
        (ran, is_made, model.requests().len())
    };
    let (insists, is_made, asked) = run("none", &["--sandbox", "on"]);
    assert_eq!((insists.code, is_made, asked), (Some(3), false, 0), "{}", insists.err);
    assert!(insists.err.contains("no sandbox is available: "), "{}", insists.err);

    let (ran, is_made, _) = run("none", &[]);
    assert_eq!((ran.code, is_made), (Some(3), false), "{}", ran.err);
    assert!(ran.err.contains("refused: touch made"), "{}", ran.err);
    assert!(ran.err.contains("sheaf sandbox explain"), "{}", ran.err);
    assert!(ran.out.contains("Not run."), "{}", ran.out);

    // Who gives it up is told what is missing, and may have it run.
    let (ran, is_made, _) = run("none", &["--sandbox", "off"]);
    assert_eq!((ran.code, is_made), (Some(4), false), "{}", ran.err);
    assert!(ran.err.contains("--force allows it"), "{}", ran.err);
    let (ran, is_made, _) = run("none", &["--sandbox", "off", "--force"]);
    assert_eq!((ran.code, is_made), (Some(0), true), "{}", ran.err);
}

/// Returns true if the kernel has what a partial sandbox is made of; says so if not.
fn has_partial() -> bool {
    let home = home();
    let tried = sheaf(home.path())
        .current_dir(workspace(home.path()))
        .env("SHEAF_SANDBOX_AT_MOST", "partial")
        .args(["sandbox", "run", "--", "true"])
        .output();
    let has = tried.is_ok_and(|it| it.status.success());
    if !has {
        std::io::stderr()
            .write_all(b"\nSKIPPED: no Landlock here, so there is no partial sandbox\n")
            .ok();
    }
    has
}

/// What a rule gives: the network only by name, git only where a repository was, and files that may go.
#[test]
fn a_rule_gives_what_it_says_and_no_more() {
    if !has_partial() {
        return;
    }
    let run = |calls: &[(&'static str, Value)], options: &[&str]| {
        let home = home();
        let folder = workspace(home.path());
        for path in ["build/a", "build/b"] {
            std::fs::create_dir_all(folder.join("build")).expect("made");
            std::fs::write(folder.join(path), "x").expect("written");
        }
        std::fs::write(home.path().join(".gitconfig"), "[user]\nname = x\nemail = x\n").expect("written");
        let git = Command::new("git").args(["init", "-q"]).current_dir(&folder).status();
        assert!(git.expect("it runs").success());
        let calls = calls.iter().cloned().map(|it| Script::Calls("Next.", vec![it]));
        let model = Model::with(calls.chain([Script::says("Done.")]).collect::<Vec<_>>());
        let mut sheaf = with_model(home.path(), &model);
        sheaf
            .env("SHEAF_SANDBOX_AT_MOST", "partial")
            .arg("--workspace")
            .arg(&folder)
            .args(["-p", "go"])
            .args(options);
        let ran = ran(sheaf);
        let is_there = folder.join("build/a").exists();
        let git = |folder: &Path| {
            let mut git = Command::new("git");
            let done = git.args(["log", "--format=%s"]).current_dir(folder).output();
            String::from_utf8(done.expect("it runs").stdout).expect("text")
        };
        let sub = folder.join("src/sub");
        let commits = [git(&folder), if sub.exists() { git(&sub) } else { String::new() }].concat();
        (ran, is_there, commits)
    };
    let command = |line: &str, permissions: &[&str]| {
        let arguments = json!({ "command": line, "is_background": false, "required_permissions": permissions });
        ("run_terminal_cmd", arguments)
    };
    let fetch = command("git fetch", &["network"]);
    let (ran, _, _) = run(std::slice::from_ref(&fetch), &["--allow", "Shell(git fetch)"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    let hint = "--allow 'Shell(git fetch) with network' allows it";
    assert!(ran.err.contains(hint), "{}", ran.err);
    let (ran, _, _) = run(&[fetch], &["--allow", "Shell(git fetch) with network"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);

    let delete = ("delete_file", json!({ "target_file": "build/a" }));
    let (ran, is_there, _) = run(std::slice::from_ref(&delete), &["--allow", "Delete(docs/**)"]);
    assert_eq!((ran.code, is_there), (Some(4), true), "{}", ran.err);
    let (ran, is_there, _) = run(&[delete], &["--allow", "Delete(build/**)"]);
    assert_eq!((ran.code, is_there), (Some(0), false), "{}", ran.err);

    let init = command("git init -q src/sub", &["git_write"]);
    let commit = |folder: &str| {
        command(
            &format!("cd {folder} && git commit --allow-empty -qm second"),
            &["git_write"],
        )
    };
    let allow = ["--allow", "Shell(git init)", "--allow", "Shell(git commit)"];
    let (ran, _, commits) = run(&[init.clone(), commit("src")], &allow);
    assert_eq!(
        (ran.code, commits.as_str()),
        (Some(0), "second\n"),
        "the control: {}",
        ran.err
    );
    let (ran, _, commits) = run(&[init, commit("src/sub")], &allow);
    assert_eq!((ran.code, commits.as_str()), (Some(4), ""), "{}", ran.err);
    let why = "a repository that was not there when this session began";
    assert!(ran.err.contains(why), "{}", ran.err);
}

/// A file outside the workspace is the same to a tool and to a command that names it.
#[test]
fn reading_outside_is_judged_alike_for_commands_and_tools() {
    // The sandbox has a `/tmp` of its own.
    let outside = tempfile::tempdir_in(crate::scratch()).expect("a folder");
    let outside = outside.path().canonicalize().expect("it is there");
    let file = outside.join("notes.txt");
    std::fs::write(&file, "the notes\n").expect("written");
    let read = |name: &'static str, arguments: Value, options: &[&str]| {
        let home = home();
        let folder = workspace(home.path());
        std::fs::create_dir_all(folder.join("kept")).expect("made");
        std::fs::write(folder.join("kept/plan.txt"), "the plan\n").expect("written");
        std::fs::write(folder.join(".env"), "TOKEN=of-ours\n").expect("written");
        std::os::unix::fs::symlink(&file, folder.join("link")).expect("linked");
        let model = Model::with([Script::Calls("I read.", vec![(name, arguments)]), Script::says("Done.")]);
        let mut sheaf = with_model(home.path(), &model);
        sheaf.arg("--workspace").arg(&folder).args(["-p", "go"]).args(options);
        let ran = ran(sheaf);
        let heard = model.requests()[1]["messages"].to_string();
        let refused = ran.err.lines().skip_while(|it| !it.contains("refused")).skip(1);
        let refused: Vec<_> = refused.map(|it| it.trim().to_owned()).collect();
        (ran.code, heard, refused)
    };
    let shown = file.display();
    let tool = |path: &str| ("read_file", json!({ "target_file": path }));
    let command = |line: String| ("run_terminal_cmd", json!({ "command": line, "is_background": false }));
    let commands = [
        format!("cat {shown}"),
        format!("cat < '{shown}'"),
        format!("cat {}/*", outside.display()),
        format!("cd {} && cat notes.txt", outside.display()),
        format!("python3 -c 'print(open(\"{shown}\").read())'"),
        "cat link".to_owned(),
    ];
    let (name, arguments) = tool(&shown.to_string());
    let (code, heard, refused) = read(name, arguments.clone(), &[]);
    assert_eq!(code, Some(4), "{heard}");
    assert!(refused[0].contains("is outside the workspace"), "{refused:?}");
    for line in &commands {
        let (name, arguments) = command(line.clone());
        let (code, heard, same) = read(name, arguments, &[]);
        assert_eq!(code, Some(4), "{line}: {heard}");
        assert!(!heard.contains("the notes"), "{line}: {heard}");
        assert!(same[0].contains("is outside the workspace"), "{line}: {same:?}");
        assert_eq!(same[1], refused[1], "{line}");
    }
    // The rule that would allow the one allows the others.
    let rule = format!("Read({}/**)", outside.display());
    let (code, heard, _) = read(name, arguments, &["--allow", &rule]);
    assert!(code == Some(0) && heard.contains("the notes"), "{heard}");
    for line in &commands[..2] {
        let (name, arguments) = command(line.clone());
        let (code, heard, _) = read(name, arguments, &["--allow", &rule]);
        assert!(code == Some(0) && heard.contains("the notes"), "{line}: {heard}");
    }
    // What is a secret by its name is read by neither, whatever is allowed.
    std::fs::create_dir_all(outside.join("other/.ssh")).expect("made");
    for secret in ["other/.env", "other/.ssh/id_rsa", "other/key.pem"] {
        std::fs::write(outside.join(secret), "TOKEN=of-the-other\n").expect("written");
        let path = outside.join(secret).display().to_string();
        let lines = [
            format!("cat {path}"),
            format!("grep T < {path}"),
            format!("cp {path} x && cat x"),
        ];
        let calls = lines.map(command).into_iter().chain([tool(&path)]);
        for (name, arguments) in calls {
            for options in [&[][..], &["--allow", &rule]] {
                let (_, heard, _) = read(name, arguments.clone(), options);
                let is_refused = heard.contains("is a secret") && !heard.contains("of-the-other");
                assert!(is_refused, "{arguments} {options:?}: {heard}");
            }
        }
    }
    // A rule that forbids reading holds for both, named or not.
    let deny = ["--deny", "Read(kept/**)"];
    let (name, arguments) = tool("kept/plan.txt");
    let (_, heard, _) = read(name, arguments, &deny);
    assert!(heard.contains("is hidden") && !heard.contains("the plan"), "{heard}");
    let (name, arguments) = command("cat kept/plan.txt".to_owned());
    let (_, heard, _) = read(name, arguments.clone(), &deny);
    assert!(!heard.contains("the plan"), "{heard}");
    let (_, heard, _) = read(name, arguments, &[]);
    assert!(heard.contains("the plan"), "the control: {heard}");
    let (name, arguments) = command("cat k*/p*".to_owned());
    let (_, heard, _) = read(name, arguments.clone(), &deny);
    assert!(!heard.contains("the plan"), "{heard}");
    let (_, heard, _) = read(name, arguments, &[]);
    assert!(heard.contains("the plan"), "the control: {heard}");
    // It says why, and suggests no permission that would not help.
    let (name, arguments) = command("cat .en*".to_owned());
    let (_, heard, _) = read(name, arguments, &[]);
    assert!(!heard.contains("of-ours") && !heard.contains("may need"), "{heard}");
    assert!(heard.contains("`.env` is hidden from commands"), "{heard}");
}

/// A partial sandbox runs what it confines, and says what it cannot.
#[test]
fn in_a_partial_sandbox_a_run_does_what_is_confined_and_names_what_is_not() {
    if !has_partial() {
        return;
    }
    let run = |line: &str, permissions: Value, arguments: &[&str]| {
        let home = home();
        let folder = workspace(home.path());
        let git = |words: &[&str]| {
            let mut git = Command::new("git");
            let done = git.args(words).current_dir(&folder).env("HOME", home.path()).output();
            String::from_utf8(done.expect("it runs").stdout).expect("text")
        };
        git(&["init", "-q"]);
        git(&["config", "user.name", "x"]);
        git(&["config", "user.email", "x@example.org"]);
        let call = json!({ "command": line, "is_background": false, "required_permissions": permissions });
        let model = Model::with([
            Script::Calls("I run it.", vec![("run_terminal_cmd", call)]),
            Script::says("Done."),
        ]);
        let mut sheaf = with_model(home.path(), &model);
        sheaf
            .env("SHEAF_SANDBOX_AT_MOST", "partial")
            .arg("--workspace")
            .arg(&folder)
            .args(["-p", "go"])
            .args(arguments);
        let ran = ran(sheaf);
        let heard = model.requests()[1]["messages"].to_string();
        let commits = git(&["log", "--format=%s", "--all"]);
        let is_planted = folder.join(".git/hooks/post-commit").exists() || folder.join(".git/commondir").exists();
        assert!(!is_planted, "{line}");
        (ran, heard, commits, folder.join("made").exists())
    };
    let (ran, heard, _, _) = run("echo $((40+2)) > src/b.rs && cat src/b.rs", json!([]), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        heard.contains("42") && !ran.err.contains("refused"),
        "{heard} {}",
        ran.err
    );

    // The kernel's refusal is named to the model and to the person.
    let (ran, heard, _, is_made) = run("touch made", json!([]), &[]);
    assert_eq!((ran.code, is_made), (Some(0), false), "{}", ran.err);
    for told in [&heard, &ran.err] {
        assert!(told.contains("partial (.git top level, metadata)"), "{told}");
    }

    let (ran, heard, _, _) = run("curl https://example.org", json!(["network"]), &[]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(
        heard.contains("permission network") && ran.err.contains("permission network"),
        "{heard} {}",
        ran.err
    );

    // Git commits where it may write, and nowhere else; what would run is put back.
    let commit = "git add src && git commit -qm one";
    let allow = ["--allow", "Shell(git commit)", "--allow", "Shell(git add)"];
    let (ran, heard, commits, _) = run(commit, json!([]), &allow);
    assert_eq!((ran.code, commits.as_str()), (Some(0), ""), "{}", ran.err);
    assert!(heard.contains("git_write"), "{heard}");
    let (ran, heard, commits, _) = run(commit, json!(["git_write"]), &allow);
    assert_eq!((ran.code, commits.as_str()), (Some(0), "one\n"), "{heard} {}", ran.err);
    let plant = "git add src && git commit -qm two && echo evil > .git/hooks/post-commit && echo /tmp > .git/commondir";
    let (ran, heard, commits, _) = run(plant, json!(["git_write"]), &["--force"]);
    assert_eq!((ran.code, commits.as_str()), (Some(0), "two\n"), "{heard} {}", ran.err);
    for told in [&heard, &ran.err] {
        assert!(told.contains("changed `.git/hooks/post-commit`"), "{told}");
    }
}

/// A recording's questions were put to somebody else, and answered.
#[test]
fn a_recording_whose_questions_are_answered_is_printed_and_nothing_is_refused() {
    let home = home();
    let tour = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/tour/tour.jsonl");
    for format in ["text", "json", "stream-json", "documents", "events"] {
        let mut command = crate::print::sheaf(home.path());
        command
            .arg("replay")
            .arg(&tour)
            .args(["-p", "--speed", "max", "--output-format", format]);
        let ran = ran(command);
        assert_eq!(ran.code, Some(0), "{format}: {}", ran.err);
        assert!(!ran.err.contains("refused:"), "{format}: {}", ran.err);
    }
}

#[test]
fn settings_that_cannot_be_read_end_a_run_without_a_screen() {
    let home = home();
    let model = Model::with([Script::says("the answer")]);
    let settings = home.path().join(".config/sheaf");
    std::fs::create_dir_all(&settings).expect("made");
    let file = settings.join("config.toml");
    std::fs::write(&file, "theme = 'auto'\n").expect("written");
    assert_eq!(ask(home.path(), &model, &["-p", "hello"]).code, Some(0), "the control");
    std::fs::write(&file, b"[approvals]\ndeny = ['Shell(rm)']\n# \xff\n").expect("written");
    let refused = ask(home.path(), &model, &["-p", "hello"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(
        refused.err.contains("not UTF-8") && refused.err.contains("everything asks"),
        "{}",
        refused.err
    );
    // Nor is a rule known behind a mistake of syntax, or in a list that is none.
    for text in [
        "[approvals\ndeny = ['Shell(rm)']\n",
        "theme = owl\n[approvals]\ndeny = ['Shell(rm)']\n",
        "[approvals]\ndeny = ['Shell(rm)', 3]\n",
    ] {
        std::fs::write(&file, text).expect("written");
        let refused = ask(home.path(), &model, &["-p", "hello"]);
        assert_eq!(refused.code, Some(2), "{text}: {}", refused.err);
        assert!(refused.err.contains("everything asks"), "{text}: {}", refused.err);
    }
    // A link that leads nowhere is no absent file.
    std::fs::remove_file(&file).expect("removed");
    std::os::unix::fs::symlink("nowhere", &file).expect("linked");
    let refused = ask(home.path(), &model, &["-p", "hello"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("a link that leads nowhere"), "{}", refused.err);
}
