//! What hooks are told, event by event, and what their answers mean.

use std::{path::PathBuf, time::Duration};

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use super::{input::tool, *};

fn members(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: "call_1".into(),
        name: name.into(),
        arguments: members(arguments),
        mcp: None,
        file: None,
        directory: "/w/sub".into(),
        root: "/w".into(),
    }
}

fn shell() -> ToolCall {
    call(
        "run_terminal_cmd",
        json!({
            "command": "git push", "explanation": "Publish", "working_directory": "sub", "timeout_ms": 5000,
            "is_background": false
        }),
    )
}

fn occasions() -> Vec<Occasion> {
    let mcp = ToolCall {
        mcp: Some(("docs".into(), "search".into())),
        ..call("mcp__docs__search", json!({ "q": "x" }))
    };
    vec![
        Occasion::SessionStart {
            source: "startup".into(),
        },
        Occasion::SessionEnd { duration_ms: 5000 },
        Occasion::Prompt {
            text: "fix it".into(),
            files: vec!["/w/a.rs".into()],
        },
        Occasion::ToolBefore(shell()),
        Occasion::ToolAfter {
            call: shell(),
            output: "done".into(),
            data: json!({ "exitCode": 0, "state": "completed" }),
            duration_ms: 12,
        },
        Occasion::ToolFailed {
            call: shell(),
            error: "too slow".into(),
            is_timeout: true,
            is_denied: false,
            duration_ms: 12,
        },
        Occasion::ShellBefore {
            call: shell(),
            command: "git push".into(),
            timeout_ms: 30_000,
            is_sandboxed: true,
        },
        Occasion::McpBefore(mcp),
        Occasion::ReadBefore {
            call: call("read_file", json!({ "target_file": "a.rs" })),
            path: "/w/a.rs".into(),
            content: "fn main() {}".into(),
        },
        Occasion::EditAfter {
            call: String::new(),
            path: "/w/a.rs".into(),
            edits: vec![("a".into(), "b".into())],
        },
        Occasion::CompactBefore {
            is_asked: false,
            keep: "the plan".into(),
            tokens: 170_000,
            window: Some(200_000),
            messages: 40,
            replaced: 30,
            is_first: true,
        },
        Occasion::Stop {
            status: "completed",
            loops: 1,
            last_message: "All done.".into(),
        },
        Occasion::Notification {
            message: "wanted".into(),
            kind: "permission_prompt",
        },
    ]
}

/// Each event of both programs has a file with the input that its hooks get.
#[test]
fn every_event_has_the_input_that_its_program_sends() {
    let common = Common {
        conversation: "c1".into(),
        generation: "g1".into(),
        model: "m1".into(),
        root: "/w".into(),
        mode: "agent".into(),
        effort: "high".into(),
    };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks");
    let mut seen = 0;
    for occasion in occasions() {
        let (_, own, cursor, claude) = Point::ALL.into_iter().find(|it| it.0 == occasion.point()).unwrap();
        let cursor = if cursor.is_empty() { own } else { cursor };
        for (dialect, name, event) in [(Dialect::Cursor, "cursor", cursor), (Dialect::Claude, "claude", claude)] {
            if event.is_empty() {
                continue;
            }
            let path = folder.join(name).join(format!("{event}.json"));
            let text = std::fs::read_to_string(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
            let text = text.replace("VERSION", env!("CARGO_PKG_VERSION"));
            let want: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(hook_input(dialect, event, &common, &occasion), want, "{name} {event}");
            seen += 1;
        }
    }
    let files = ["cursor", "claude"].map(|it| std::fs::read_dir(folder.join(it)).unwrap().count());
    assert_eq!(seen, files[0] + files[1], "every file belongs to an event");
}

#[test]
fn tools_have_the_names_and_arguments_that_each_program_knows() {
    for (name, arguments, cursor, claude) in [
        (
            "read_file",
            json!({ "target_file": "a.rs", "limit": 5 }),
            json!(["Read", { "path": "/w/a.rs", "limit": 5 }]),
            json!(["Read", { "file_path": "/w/a.rs", "limit": 5 }]),
        ),
        (
            "write",
            json!({ "file_path": "/x/a.rs", "contents": "x" }),
            json!(["Write", { "file_path": "/x/a.rs", "content": "x" }]),
            json!(["Write", { "file_path": "/x/a.rs", "content": "x" }]),
        ),
        (
            "search_replace",
            json!({ "file_path": "a.rs", "old_string": "a", "new_string": "b" }),
            json!(["StrReplace", { "path": "/w/a.rs", "old_string": "a", "new_string": "b" }]),
            json!(["Edit", { "file_path": "/w/a.rs", "old_string": "a", "new_string": "b" }]),
        ),
        (
            "apply_patch",
            json!({ "patch": "*** Begin Patch\n*** Update File: a.rs\n" }),
            json!(["ApplyPatch", { "file_path": "/w/a.rs", "patch": "*** Begin Patch\n*** Update File: a.rs\n" }]),
            json!(["Edit", {
                "file_path": "/w/a.rs", "patch": "*** Begin Patch\n*** Update File: a.rs\n", "old_string": "",
                "new_string": ""
            }]),
        ),
        (
            "glob_file_search",
            json!({ "glob_pattern": "*.rs", "target_directory": "src" }),
            json!(["Glob", { "glob_pattern": "*.rs", "target_directory": "src" }]),
            json!(["Glob", { "pattern": "*.rs", "path": "src" }]),
        ),
        (
            "delete_file",
            json!({ "target_file": "a.rs" }),
            json!(["Delete", { "path": "/w/a.rs" }]),
            json!(["Delete", { "file_path": "/w/a.rs" }]),
        ),
        (
            "ask",
            json!({ "title": "t" }),
            json!(["ask", { "title": "t" }]),
            json!(["ask", { "title": "t" }]),
        ),
    ] {
        let call = call(name, arguments);
        let told = |dialect| {
            let (name, input) = tool(dialect, &call);
            json!([name, input])
        };
        assert_eq!(told(Dialect::Cursor), cursor);
        assert_eq!(told(Dialect::Claude), claude);
    }
}

fn hook(point: Point, dialect: Dialect) -> Hook {
    Hook {
        point,
        dialect,
        event: "event".into(),
        command: "x".into(),
        matcher: None,
        condition: None,
        timeout: Duration::from_secs(1),
        fails_closed: false,
        loop_limit: 5,
        is_detached: false,
        is_once: false,
        isolation: Isolation::Sandbox,
        path: "hooks.json".into(),
        owner: Owner::User,
        directory: PathBuf::new(),
        folder: None,
        variables: Vec::new(),
    }
}

fn read(point: Point, dialect: Dialect, code: i32, stdout: &str, stderr: &str) -> Result<Answer, Broken> {
    read_answer(&hook(point, dialect), Exit::Code(code), stdout, stderr)
}

#[test]
fn an_answer_of_cursors_form_is_read() {
    use Dialect::Cursor;
    let say = |point, stdout: &str| read(point, Cursor, 0, stdout, "").unwrap();
    assert_eq!(say(Point::ToolBefore, " \n"), Answer::default());
    let answer = say(
        Point::ShellBefore,
        r#"{"permission":"deny","user_message":"no net","agent_message":"use the cache"}"#,
    );
    assert_eq!(
        (answer.decision, answer.reason.as_str(), answer.message.as_str()),
        (Some(Decision::Deny), "use the cache", "no net")
    );
    let old = say(Point::ToolBefore, r#"{"decision":"deny","reason":"old form"}"#);
    assert_eq!((old.decision, old.reason.as_str()), (Some(Decision::Deny), "old form"));
    let changed = say(
        Point::ToolBefore,
        r#"{"permission":"allow","updated_input":{"command":"ls"}}"#,
    );
    assert_eq!(changed.input, Some(members(json!({ "command": "ls" }))));
    let blocked = say(Point::Prompt, r#"{"continue":false,"user_message":"no secrets"}"#);
    assert_eq!(
        (blocked.decision, blocked.reason.as_str()),
        (Some(Decision::Deny), "no secrets")
    );
    assert_eq!(
        say(Point::Stop, r#"{"followup_message":"test it"}"#)
            .followup
            .as_deref(),
        Some("test it")
    );
    let start = say(
        Point::SessionStart,
        r#"{"env":{"A":"b","2x":"no","PATH":"/p"},"additional_context":"Use tabs."}"#,
    );
    assert_eq!(
        start.variables,
        [("A".into(), "b".into()), ("PATH".into(), "/p".into())]
    );
    assert_eq!(start.context, "Use tabs.");
    let after = say(
        Point::ToolAfter,
        r#"{"additional_context":"x","updated_mcp_tool_output":{"a":1}}"#,
    );
    assert_eq!(
        (after.context.as_str(), after.output.as_deref()),
        ("x", Some("{\"a\":1}"))
    );
}

#[test]
fn an_answer_of_claude_codes_form_is_read() {
    use Dialect::Claude;
    let say = |point, stdout: &str| read(point, Claude, 0, stdout, "").unwrap();
    let own = |inner: &str| format!(r#"{{"hookSpecificOutput":{{"hookEventName":"x",{inner}}}}}"#);
    let denied = say(
        Point::ToolBefore,
        &own(r#""permissionDecision":"deny","permissionDecisionReason":"not here""#),
    );
    assert_eq!(
        (denied.decision, denied.reason.as_str()),
        (Some(Decision::Deny), "not here")
    );
    let old = say(Point::ToolBefore, r#"{"decision":"approve"}"#);
    assert_eq!(old.decision, Some(Decision::Allow));
    let changed = say(
        Point::ToolBefore,
        &own(r#""permissionDecision":"allow","updatedInput":{"command":"ls"},"additionalContext":"c""#),
    );
    assert_eq!((changed.input.is_some(), changed.context.as_str()), (true, "c"));
    assert_eq!(say(Point::Prompt, "plain words\n").context, "plain words");
    assert_eq!(say(Point::ToolAfter, "plain words\n").context, "");
    let blocked = say(Point::ToolAfter, r#"{"decision":"block","reason":"format it"}"#);
    assert_eq!(blocked.context, "format it");
    assert_eq!(
        say(Point::Stop, r#"{"decision":"block","reason":"go on"}"#)
            .followup
            .as_deref(),
        Some("go on")
    );
    let halted = say(
        Point::ToolBefore,
        r#"{"continue":false,"stopReason":"enough","systemMessage":"hi"}"#,
    );
    assert_eq!(
        (halted.halt.as_deref(), halted.message.as_str()),
        (Some("enough"), "hi")
    );
}

#[test]
fn a_program_that_goes_on_by_itself_answers_on_a_later_line() {
    let say = |stdout: &str| read(Point::SessionStart, Dialect::Claude, 0, stdout, "");
    let detached = r#"{"async": true, "asyncTimeout": 180000}"#;
    assert_eq!(say(detached), Ok(Answer::default()));
    assert_eq!(
        say(&format!("{detached}\n{{\"metrics\":{{}}}}\n")),
        Ok(Answer::default())
    );
    let told = say(&format!("{detached}\nlog\n{{\"systemMessage\":\"ready\"}}\n")).unwrap();
    assert_eq!(told.message, "ready");
    assert!(say("{\"async\": false}\n{}\n").is_err());
}

#[test]
fn exit_2_refuses_and_any_other_failure_is_a_broken_hook() {
    for dialect in [Dialect::Cursor, Dialect::Claude] {
        let two = read(Point::ToolBefore, dialect, 2, "{", "why\n").unwrap();
        assert_eq!((two.decision, two.reason.as_str()), (Some(Decision::Deny), "why"));
        let one = read(Point::ToolBefore, dialect, 1, "", "\noops\nmore").unwrap_err();
        assert_eq!(one, Broken("exit code 1: oops".into()));
        let missing = read(Point::ToolBefore, dialect, 127, "", "bash: x: command not found").unwrap_err();
        assert_eq!(
            missing.0,
            "its program was not found (exit code 127): bash: x: command not found"
        );
        assert_eq!(
            read(Point::ToolAfter, dialect, 2, "", "fix it").unwrap().context,
            "fix it"
        );
        assert_eq!(
            read(Point::Stop, dialect, 2, "", "more").unwrap().followup.as_deref(),
            Some("more")
        );
        assert_eq!(read(Point::Notification, dialect, 2, "", "x").unwrap().decision, None);
        let late = read_answer(&hook(Point::ToolBefore, dialect), Exit::TimedOut, "", "");
        assert_eq!(late.unwrap_err().0, "it took longer than 1 s");
        let killed = read_answer(&hook(Point::ToolBefore, dialect), Exit::Signal(9), "", "");
        assert_eq!(killed.unwrap_err().0, "it was ended by signal 9");
    }
    let junk = read(Point::ToolBefore, Dialect::Cursor, 0, "junk", "").unwrap_err();
    assert!(junk.0.starts_with("its output is not JSON"), "{}", junk.0);
    let word = read(Point::ToolBefore, Dialect::Cursor, 0, r#"{"permission":"maybe"}"#, "").unwrap_err();
    assert_eq!(word.0, "`maybe` is no decision: allow, ask or deny");
}

#[test]
fn long_answers_are_cut() {
    let long = json!({ "additional_context": "x".repeat(50_000) }).to_string();
    let answer = read(Point::ToolAfter, Dialect::Cursor, 0, &long, "").unwrap();
    assert!(answer.context.len() < 10_100, "{}", answer.context.len());
    assert!(answer.context.ends_with("[cut: 40000 bytes are left out]"));
}

/// Merges answers of hooks of the user, or of the project.
fn merged(answers: &[(Owner, Result<Answer, Broken>)], closed: bool) -> Merged {
    let hooks: Vec<Hook> = answers
        .iter()
        .map(|it| Hook {
            owner: it.0,
            fails_closed: closed,
            ..hook(Point::ToolBefore, Dialect::Cursor)
        })
        .collect();
    let runs: Vec<Run<'_>> = hooks
        .iter()
        .zip(answers)
        .map(|(hook, it)| Run {
            hook,
            result: it.1.clone(),
            took_ms: 3,
            exit: Some(Exit::Code(0)),
        })
        .collect();
    merge(&runs, 0)
}

fn decided(decision: Decision) -> Answer {
    Answer {
        decision: Some(decision),
        reason: format!("{decision:?}"),
        ..Answer::default()
    }
}

#[test]
fn no_goes_before_ask_and_ask_before_yes() {
    use Decision::{Allow, Ask, Deny};
    use Owner::{Project, User};
    for (given, want, lifts) in [
        (vec![(User, Allow)], Allow, true),
        (vec![(Project, Allow)], Allow, false),
        (vec![(User, Allow), (Project, Ask)], Ask, false),
        (vec![(User, Ask), (User, Deny), (User, Allow)], Deny, false),
        (vec![(Project, Deny), (User, Ask)], Deny, false),
    ] {
        let answers: Vec<_> = given.iter().map(|it| (it.0, Ok(decided(it.1)))).collect();
        let merged = merged(&answers, false);
        assert_eq!(
            (merged.decision, merged.lifts_question),
            (Some(want), lifts),
            "{given:?}"
        );
        if want != Allow {
            assert_eq!(merged.reason, format!("{want:?}"));
        }
    }
}

#[test]
fn a_broken_hook_is_a_line_and_counts_as_a_no_only_where_it_should() {
    let broken = || vec![(Owner::User, Err(Broken("exit code 1".into())))];
    let open = merged(&broken(), false);
    assert_eq!(open.decision, None);
    assert_eq!(open.lines, ["hook hooks.json event: exit code 1"]);
    let closed = merged(&broken(), true);
    assert_eq!(closed.decision, Some(Decision::Deny));
    assert_eq!(closed.lines, ["hook hooks.json event: exit code 1; it counts as a no"]);
    let guard = hook(Point::ReadBefore, Dialect::Cursor);
    let run = Run {
        hook: &guard,
        result: Err(Broken("it was ended by signal 9".into())),
        took_ms: 1,
        exit: Some(Exit::Code(0)),
    };
    assert_eq!(merge(&[run], 0).decision, Some(Decision::Deny));
}

#[test]
fn input_changes_only_if_one_hook_alone_changes_it() {
    let change = |command: &str| {
        let answer = Answer {
            input: Some(members(json!({ "command": command }))),
            ..Answer::default()
        };
        (Owner::User, Ok(answer))
    };
    let one = merged(&[change("a")], false);
    assert_eq!(one.input, Some(members(json!({ "command": "a" }))));
    assert_eq!(one.lines, ["hook hooks.json event (3 ms): changed the input"]);
    let two = merged(&[change("a"), change("b")], false);
    assert_eq!(two.input, None);
    assert_eq!(two.lines[2], "more than one hook changes the input; it stays as it was");
}

#[test]
fn a_hook_goes_on_no_more_often_than_its_limit() {
    let hook = Hook {
        loop_limit: 2,
        ..hook(Point::Stop, Dialect::Cursor)
    };
    let run = |loops| {
        let answer = Answer {
            followup: Some("again".into()),
            ..Answer::default()
        };
        let run = Run {
            hook: &hook,
            result: Ok(answer),
            took_ms: 1,
            exit: Some(Exit::Code(0)),
        };
        merge(&[run], loops).followup
    };
    assert_eq!(
        [run(0), run(1), run(2)],
        [Some("again".into()), Some("again".into()), None]
    );
}

#[test]
fn every_file_of_a_patch_is_known_with_what_changes_in_it() {
    let patch = "*** Begin Patch\n*** Update File: README.md\n@@\n a\n-b\n+c\n*** Update File: keys/old.rs\n*** Move to: \
        keys/new.rs\n@@\n-x\n+y\n*** Add File: n.txt\n+new\n*** Delete File: gone\n*** End Patch\n";
    let patched = call("apply_patch", json!({ "patch": patch }));
    assert_eq!(
        patched.patched_files(),
        ["README.md", "keys/old.rs", "keys/new.rs", "n.txt", "gone"]
    );
    assert!(shell().patched_files().is_empty());
    for (file, before, after) in [
        (None, "a\nb\n", "a\nc\n"),
        (Some("keys/old.rs"), "x\n", "y\n"),
        (Some("keys/new.rs"), "x\n", "y\n"),
        (Some("n.txt"), "", "new\n"),
        (Some("gone"), "", ""),
    ] {
        let about = ToolCall {
            file: file.map(str::to_owned),
            ..patched.clone()
        };
        let (name, input) = tool(Dialect::Claude, &about);
        let path = format!("/w/{}", file.unwrap_or("README.md"));
        assert_eq!((name.as_str(), &input["file_path"]), ("Edit", &json!(path)));
        assert_eq!(
            (&input["old_string"], &input["new_string"]),
            (&json!(before), &json!(after)),
            "{file:?}"
        );
        assert_eq!(
            Occasion::ToolBefore(about).fits("Edit(/w/keys/**)"),
            file.is_some_and(|it| it.starts_with("keys"))
        );
    }
}

#[test]
fn a_copy_of_a_users_hook_takes_nothing_from_it() {
    let stop = |status| Occasion::Stop {
        status,
        loops: 0,
        last_message: String::new(),
    };
    let own = |owner, fails_closed| Hook {
        owner,
        fails_closed,
        path: format!("{owner:?}"),
        ..hook(Point::ToolBefore, Dialect::Claude)
    };
    for (hooks, called) in [
        (vec![own(Owner::Project, false), own(Owner::User, true)], vec!["User"]),
        (vec![own(Owner::User, true), own(Owner::User, true)], vec!["User"]),
        (
            vec![own(Owner::Project, true), own(Owner::User, false)],
            vec!["Project", "User"],
        ),
    ] {
        let set = HookSet {
            hooks,
            ..HookSet::default()
        };
        let found: Vec<&str> = set
            .at(&Occasion::ToolBefore(shell()))
            .iter()
            .map(|it| it.path.as_str())
            .collect();
        assert_eq!(found, called);
    }
    // Claude Code's hooks are called only where an answer has come to its end.
    let set = HookSet {
        hooks: vec![
            hook(Point::Stop, Dialect::Claude),
            Hook {
                command: "y".into(),
                ..hook(Point::Stop, Dialect::Cursor)
            },
        ],
        ..HookSet::default()
    };
    assert_eq!(
        (set.at(&stop("completed")).len(), set.at(&stop("aborted")).len()),
        (2, 1)
    );
}

#[test]
fn a_condition_sees_every_command_of_a_line_and_the_host_of_an_address() {
    let run = |line: &str| call("run_terminal_cmd", json!({ "command": line }));
    let fetch = |url: &str| call("web_fetch", json!({ "url": url }));
    let notebook = call("edit_notebook", json!({ "target_notebook": "a/b.ipynb" }));
    for (about, rule, fits) in [
        (run("git push"), "Bash(git push:*)", true),
        (run("cd x && A=1 git push origin"), "Bash(git push:*)", true),
        (run("(sleep 1; git push)"), "Bash(git push:*)", true),
        (run("echo git push"), "Bash(git push:*)", false),
        (run("git pushy"), "Bash(git push:*)", false),
        (fetch("https://docs.rs/serde"), "WebFetch(domain:docs.rs)", true),
        (fetch("https://www.docs.rs/"), "WebFetch(domain:docs.rs)", true),
        (
            fetch("https://evil.example/?docs.rs"),
            "WebFetch(domain:docs.rs)",
            false,
        ),
        (fetch("https://notdocs.rs/"), "WebFetch(domain:docs.rs)", false),
        (notebook, "NotebookEdit(*.ipynb)", true),
    ] {
        assert_eq!(Occasion::ToolBefore(about.clone()).fits(rule), fits, "{rule} {about:?}");
    }
}
