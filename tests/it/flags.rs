//! Flags of one run: permissions, prompts, tools, ids, limits and the place of the answer.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{
    headless::{Ran, ask, workspace},
    model::{Model, Script},
    print::home,
};

fn says_so() -> Model {
    Model::with([Script::says("so")])
}

/// The system prompt and the names of the tools of the model's first request.
fn first_request(model: &Model) -> (String, Vec<String>) {
    let request = model.requests().remove(0);
    let system = request["messages"][0]["content"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    let name = |it: &Value| it["function"]["name"].as_str().expect("a name").to_owned();
    (system, tools.iter().map(name).collect())
}

#[test]
fn the_system_prompt_is_replaced_or_added_to() {
    let home = home();
    let model = says_so();
    ask(home.path(), &model, &["-p", "x"]);
    let (usual, _) = first_request(&model);

    let model = says_so();
    let ran = ask(
        home.path(),
        &model,
        &["-p", "x", "--append-system-prompt", "Always rhyme."],
    );
    assert_eq!((ran.err.as_str(), ran.code), ("", Some(0)));
    let (added, _) = first_request(&model);
    assert_eq!(added, format!("{}\n\nAlways rhyme.\n", usual.trim_end()));

    let model = says_so();
    let flags = [
        "-p",
        "x",
        "--system-prompt",
        "You are a parrot.",
        "--append-system-prompt",
        "Always rhyme.",
    ];
    ask(home.path(), &model, &flags);
    assert_eq!(first_request(&model).0, "You are a parrot.\n\nAlways rhyme.\n");

    let gateway = ["-p", "x", "--gateway", "http://127.0.0.1:1", "--system-prompt", "x"];
    let ran = ask(home.path(), &says_so(), &gateway);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("a gateway has its own system prompt"), "{}", ran.err);
}

#[test]
fn only_the_named_tools_are_offered() {
    let home = home();
    for (names, offered) in [
        ("read_file,grep", &["read_file", "grep"][..]),
        ("Read", &["read_file"]),
        ("", &[]),
    ] {
        let model = says_so();
        let ran = ask(home.path(), &model, &["-p", "x", "--tools", names]);
        assert_eq!((ran.err.as_str(), ran.code), ("", Some(0)), "{names}");
        let mut found = first_request(&model).1;
        found.sort();
        let mut offered = offered.to_vec();
        offered.sort_unstable();
        assert_eq!(found, offered, "{names}");
    }
    let model = says_so();
    let ran = ask(home.path(), &model, &["-p", "x", "--tools", "read_fiel"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err
            .contains("there is no tool `read_fiel`; did you mean `read_file`?")
            && ran.err.contains("list_dir"),
        "{}",
        ran.err
    );
    assert!(model.requests().is_empty());
}

/// A run in which the model writes a file.
fn writes(home: &Path, flags: &[&str]) -> (Ran, bool) {
    let call = json!({ "file_path": "new.txt", "contents": "x\n" });
    let model = Model::with([Script::Calls("", vec![("write", call)]), Script::says("done")]);
    let mut arguments = vec!["-p", "x", "--output-format", "stream-json"];
    arguments.extend(flags);
    let ran = ask(home, &model, &arguments);
    let path = workspace(home).join("new.txt");
    let is_written = path.exists();
    std::fs::remove_file(path).ok();
    (ran, is_written)
}

#[test]
fn a_permission_mode_says_what_a_run_may_do() {
    let home = home();
    let careful = ["--set", "approvals.run=ask"];
    for (mode, is_written) in [
        ("default", false),
        ("acceptEdits", true),
        ("plan", false),
        ("bypassPermissions", true),
    ] {
        let (ran, written) = writes(home.path(), &[&careful[..], &["--permission-mode", mode]].concat());
        assert_eq!(written, is_written, "{mode}: {}", ran.err);
        assert_eq!(ran.lines()[0]["permissionMode"], mode);
    }
    for wrong in [
        &["--permission-mode", "acceptedits"][..],
        &["--permission-mode", "plan", "--force"],
        &["--permission-mode", "plan", "--mode", "ask"],
    ] {
        let (ran, _) = writes(home.path(), wrong);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{wrong:?}");
    }
    let (ran, _) = writes(home.path(), &["--permission-mode", "acceptedits"]);
    assert!(
        ran.err.contains("acceptEdits") && ran.err.contains("bypassPermissions"),
        "{}",
        ran.err
    );
}

#[test]
fn accept_edits_runs_plain_file_commands_and_no_others() {
    let home = home();
    for (line, runs) in [
        ("ls", true),
        ("ls -la src | head -3", true),
        ("mkdir -p d && cp README.md d/a.md && mv d/a.md d/b.md", true),
        ("find . -name '*.rs'", true),
        ("echo hi > new.txt", true),
        ("rm README.md", false),
        ("find . -delete", false),
        ("make", false),
        ("ls && make", false),
        ("cat /etc/passwd", false),
        ("ls > .envrc", false),
    ] {
        let call = json!({ "command": line, "is_background": false });
        let model = Model::with([
            Script::Calls("", vec![("run_terminal_cmd", call)]),
            Script::says("done"),
        ]);
        let arguments = [
            "-p",
            "x",
            "--permission-mode",
            "acceptEdits",
            "--output-format",
            "stream-json",
        ];
        let ran = ask(home.path(), &model, &arguments);
        assert_eq!(ran.code, Some(if runs { 0 } else { 4 }), "{line}: {}", ran.err);
        assert!(home.path().join("work/README.md").exists(), "{line}");
        // A rule allows them that the user writes.
        if line == "rm README.md" || line == "make" {
            assert!(
                ran.err.contains("no rule allows it, and none is offered"),
                "{}",
                ran.err
            );
        }
    }
    let here = workspace(home.path());
    assert!(here.join("d/b.md").exists() && here.join("new.txt").exists() && !here.join(".envrc").exists());
    // A rule of the user's still wins.
    let call = json!({ "command": "ls", "is_background": false });
    let model = Model::with([
        Script::Calls("", vec![("run_terminal_cmd", call)]),
        Script::says("done"),
    ]);
    let ran = ask(
        home.path(),
        &model,
        &["-p", "x", "--permission-mode", "acceptEdits", "--deny", "Shell(ls)"],
    );
    assert!(ran.err.contains("the rule Shell(ls) forbids it"), "{}", ran.err);
}

#[test]
fn a_conversation_gets_the_id_that_it_is_given() {
    let home = home();
    let id = "0b1c2d3e-0000-4000-8000-000000000001";
    let run = |flags: &[&str]| {
        let arguments = [&["-p", "x", "--output-format", "json"][..], flags].concat();
        ask(home.path(), &says_so(), &arguments)
    };
    assert_eq!(run(&["--session-id", id]).json()["session_id"], id);
    let again = run(&["--session-id", id]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains(&format!("--resume={id}")), "{}", again.err);
    assert_eq!(run(&[&format!("--resume={id}")]).json()["session_id"], id);

    let copy = run(&["--session-id", "copy-1", "--fork", &format!("--resume={id}")]);
    assert_eq!(copy.json()["session_id"], "copy-1");
    let wrong = run(&["--session-id", "copy-2", "--continue"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("add --fork"), "{}", wrong.err);
    for id in ["../x", "", "a b", "-x"] {
        let ran = run(&[&format!("--session-id={id}")]);
        assert_eq!(ran.code, Some(2), "{id}: {}", ran.err);
    }
}

#[test]
fn a_run_stops_at_its_budget() {
    let home = home();
    let look = || Script::Calls("", vec![("read_file", json!({ "target_file": "README.md" }))]);
    let prices = [
        "--set",
        "models.scripted.price_in=1000",
        "--set",
        "models.scripted.price_out=1000",
    ];
    let arguments = [&["-p", "x", "--max-budget-usd", "0.001"][..], &prices].concat();
    let model = Model::with([look(), look(), look()]);
    let ran = ask(home.path(), &model, &arguments);
    assert_eq!((model.requests().len(), ran.code), (1, Some(1)), "{}", ran.err);
    assert!(ran.err.contains("has cost"), "{}", ran.err);
    assert!(ran.err.contains("; --max-budget-usd is $"), "{}", ran.err);

    let model = says_so();
    let ran = ask(home.path(), &model, &["-p", "x", "--max-budget-usd", "1"]);
    assert_eq!((ran.out.as_str(), ran.code), ("so\n", Some(0)));
    assert!(ran.err.contains("what scripted costs is not known"), "{}", ran.err);
    for wrong in ["0", "-1", "much", "nan"] {
        let ran = ask(
            home.path(),
            &says_so(),
            &["-p", "x", &format!("--max-budget-usd={wrong}")],
        );
        assert_eq!(ran.code, Some(2), "{wrong}");
    }
}

#[test]
fn the_answer_is_written_to_a_file() {
    let home = home();
    let path = home.path().join("answer.md");
    let name = path.to_str().expect("it is text");
    std::fs::write(&path, "an older and longer answer").expect("written");
    let ran = ask(home.path(), &says_so(), &["-o", name, "x"]);
    assert_eq!((ran.out.as_str(), ran.err.as_str(), ran.code), ("", "", Some(0)));
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "so\n");

    let model = Model::with([Script::Refuses(401, json!({ "error": { "message": "no such key" } }))]);
    let ran = ask(home.path(), &model, &["-p", "x", "-o", name, "--output-format", "json"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(
        std::fs::read_to_string(&path).expect("it is there"),
        "",
        "no older answer"
    );

    let model = says_so();
    let ran = ask(home.path(), &model, &["-p", "x", "-o", "none/answer.md"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("create none first"), "{}", ran.err);
    assert!(model.requests().is_empty());
}

#[test]
fn a_rule_that_forbids_and_cannot_be_read_ends_the_run() {
    let home = home();
    for rule in ["Read(secret/**", "Reed(secret/**)", "Read()"] {
        let model = says_so();
        let ran = ask(home.path(), &model, &["-p", "x", "--force", "--deny", rule]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{rule}");
        assert!(ran.err.contains(rule), "{}", ran.err);
        assert!(model.requests().is_empty());
    }
}
