//! Calls: looked at, run in their order, answered once each.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn a_call_is_looked_at_run_and_answered() {
    let mut talk = Talk::begin();
    let says = [
        (
            super::tests::says("Let me look."),
            r#"response of m | +1 text | "Let me look.""#,
        ),
        (call("a", "look", json!({ "file_path": "x" })), ""),
        (ends(EndReason::Stop), "-doc_001 | prepare 1 look"),
        (harmless(1), r#"+2 tool_call | look | {"file_path":"x"} | run 1 look"#),
        (
            ran(1, "it is there"),
            r#"= "success" "it is there" | -doc_002 | call m with 3"#,
        ),
        (super::tests::says("It is."), r#"+3 text | "It is.""#),
        (ends(EndReason::Stop), "-doc_003 | done completed stop"),
    ];
    for (input, want) in says {
        assert_eq!(talk.says(input), want);
    }
    assert_eq!(talk.results(), ["a: it is there"]);
    let kinds: Vec<&str> = talk
        .turn
        .memory
        .history
        .messages
        .iter()
        .map(|it| match it {
            ModelMessage::User(_) => "user",
            ModelMessage::Assistant(_) => "assistant",
            ModelMessage::Results(_) => "results",
        })
        .collect();
    assert_eq!(kinds, ["user", "assistant", "results", "assistant"]);
}

#[test]
fn without_tools_old_calls_are_told_as_text() {
    let mut talk = Talk::begin();
    talk.all([
        thinks("hm"),
        Input::Piece(Piece::ThinkingDone {
            opaque: json!("signed"),
        }),
        super::tests::says("Let me look."),
        call("a", "look", json!({ "file_path": "x" })),
        ends(EndReason::ToolUse),
        harmless(1),
        ran(1, "it is </user_query> there"),
        super::tests::says("It is."),
        ends(EndReason::Stop),
    ]);
    // All that this place has is switched off by the settings, as with `--tools ''`.
    let mut settings = crate::config::Settings::default();
    for name in [
        "look",
        "change",
        "run",
        "ask",
        "create_plan",
        "switch_mode",
        "todo_write",
    ] {
        let tool = crate::config::ToolSettings {
            modes: Some(Vec::new()),
            ..crate::config::ToolSettings::default()
        };
        settings.tools.insert(name.to_owned(), tool);
    }
    let said = submission_with("and now?", |it| it.settings = Arc::new(settings));
    let effects = talk.turn.step(Input::Submit(Box::new(said)), 0);
    let request = asked(&effects);
    assert!(request.tools.is_empty());
    let texts: Vec<String> = request
        .messages
        .iter()
        .map(|it| match it {
            ModelMessage::User(parts) => match &parts[..] {
                [Part::Text(text)] => format!("user: {text}"),
                other => panic!("{other:?}"),
            },
            ModelMessage::Assistant(said) => {
                let texts = said.iter().map(|it| match it {
                    Said::Text(text) => text.to_string(),
                    other => panic!("{other:?}"),
                });
                format!("assistant: {}", texts.collect::<Vec<_>>().join(" | "))
            }
            ModelMessage::Results(results) => panic!("{results:?}"),
        })
        .collect();
    assert_eq!(
        texts,
        [
            "user: hi",
            "assistant: Let me look. | (called the tool look with {\"file_path\":\"x\"})",
            "user: (the tool look returned: it is &lt;/user_query> there)",
            "assistant: It is.",
            "user: and now?",
        ]
    );
    // What is kept is what was said: with tools again, calls are calls.
    talk.all([super::tests::says("Nothing."), ends(EndReason::Stop)]);
    let effects = talk.turn.step(submit("go on"), 0);
    let is_result = |it: &ModelMessage| matches!(it, ModelMessage::Results(_));
    assert!(asked(&effects).messages.iter().any(is_result));
}

#[test]
fn what_reaches_out_and_changes_nothing_runs_beside_readers() {
    let fetch = Tool {
        is_apart: true,
        ..a_tool("fetch", Class::Runs, &[Mode::Agent], Work::call(nothing, never))
    };
    let mut talk = Talk::of(submission_with("hi", |it| {
        it.tools = it.tools.iter().cloned().chain([Arc::new(fetch)]).collect();
    }));
    talk.all([
        call("a", "fetch", json!({})),
        call("b", "look", json!({})),
        call("c", "fetch", json!({})),
        call("d", "run", json!({ "command": "ls" })),
        call("e", "fetch", json!({})),
    ]);
    talk.says(ends(EndReason::ToolUse));
    talk.all([harmless(1), harmless(2)]);
    let said = talk.says(harmless(3));
    assert!(said.ends_with("run 3 fetch"), "nobody waits for the page: {said}");
    let said = [harmless(4), harmless(5), ran(1, "one"), ran(2, "two")].map(|it| talk.says(it));
    let said = said.join(" | ");
    assert!(
        !said.contains("run 4") && !said.contains("run 5"),
        "a command waits for the page before it: {said}"
    );
    let said = talk.says(ran(3, "three"));
    assert!(
        said.ends_with("run 4 run"),
        "and the page behind it waits for the command: {said}"
    );
}

#[test]
fn readers_run_together_and_writers_alone() {
    let mut talk = Talk::begin();
    talk.all([
        call("a", "look", json!({})),
        call("b", "look", json!({})),
        call("c", "change", json!({})),
        call("d", "look", json!({})),
    ]);
    assert_eq!(
        talk.says(ends(EndReason::ToolUse)),
        "prepare 1 look | prepare 2 look | prepare 4 look",
        "what is changed is worked out when its turn comes"
    );
    talk.all([harmless(1), harmless(4)]);
    assert_eq!(talk.says(harmless(2)), "+2 tool_call | look | {} | run 2 look");
    assert_eq!(talk.says(ran(2, "two")), r#"= "success" "two" | -doc_002"#);
    assert_eq!(
        talk.says(ran(1, "one")),
        r#"= "success" "one" | -doc_001 | prepare 3 change"#
    );
    assert_eq!(talk.says(proposing(3)), "make 3");
    assert_eq!(
        talk.says(ran(3, "")),
        r#"+3 file_edit | "new 1\n" | -doc_003 applied | +4 file_edit | "new 3\n" | -doc_004 applied | +5 tool_call | look | {} | run 4 look"#
    );
    assert_eq!(
        talk.says(ran(4, "four")),
        r#"= "success" "four" | -doc_005 | call m with 3"#
    );
    assert_eq!(
        talk.results(),
        ["a: one", "b: two", "c: changed a.rs", "d: four"],
        "in the order of the calls"
    );
}

/// The report on a step.
fn checked(text: &str, problems: &[&str]) -> Input {
    let problem = |it: &&str| json!({ "filePath": it });
    Input::Checked {
        report: CheckReport {
            text: text.to_owned(),
            checked: Some(json!({
                "isChecked": true,
                "newProblems": problems.len(),
                "fixedProblems": 0,
                "problems": problems.iter().map(problem).collect::<Vec<_>>(),
                "unchecked": [],
            })),
        },
    }
}

#[test]
fn the_changes_of_a_step_are_looked_at_together_once_all_calls_are_done() {
    let begin = || {
        let mut talk = Talk::of(submission("hi"));
        talk.all([
            call("a", "change", json!({})),
            call("b", "look", json!({})),
            call("c", "change", json!({})),
            ends(EndReason::ToolUse),
            proposing(1),
        ]);
        assert_eq!(
            talk.says(made(1)),
            r#"response of m | +1 file_edit | "new 1\n" | -doc_001 applied | +2 file_edit | "new 3\n" | -doc_002 applied"#,
            "nothing waits for a check between the calls of a step"
        );
        assert_eq!(talk.says(harmless(2)), "+3 tool_call | look | {} | run 2 look");
        talk.all([ran(2, "x"), proposing(3)]);
        let last = talk.says(made(3));
        assert!(last.ends_with("-doc_005 applied | check [1, 3]"), "{last}");
        talk
    };
    let mut talk = begin();
    let next = talk.says(checked("New lint errors", &["b.rs"]));
    let elsewhere = r#""unchecked":["the changes of a step are judged together: see the last one"]"#;
    let updates: Vec<&str> = next.split(" | ").collect();
    assert_eq!(updates.len(), 3, "{next}");
    assert!(
        updates[0].starts_with("doc_002 updated") && updates[0].contains(elsewhere),
        "{next}"
    );
    assert!(
        updates[1].starts_with("doc_005 updated") && updates[1].contains(r#""newProblems":1"#),
        "{next}"
    );
    assert!(updates[2].starts_with("call m with"), "{next}");
    assert_eq!(
        talk.results(),
        ["a: changed a.rs", "b: x", "c: changed a.rs\n\nNew lint errors"]
    );
    assert_eq!(talk.says(checked("late", &[])), "", "one report is all");
    // Where nothing is to be said, nothing is added.
    let mut talk = begin();
    let next = talk.says(checked("", &[]));
    assert_eq!(next.matches(r#""isChecked":true"#).count(), 2, "each says so: {next}");
    assert_eq!(talk.results(), ["a: changed a.rs", "b: x", "c: changed a.rs"]);
    // What was changed stays changed, and the model will know; the documents do not wait for ever.
    let mut talk = begin();
    let end = talk.says(Input::Cancel);
    assert_eq!(
        end.matches(r#""unchecked":["it was stopped before the check ended"]"#)
            .count(),
        2,
        "{end}"
    );
    assert_eq!(talk.results(), ["a: changed a.rs", "b: x", "c: changed a.rs"]);
    assert_eq!(talk.says(checked("late", &[])), "", "nobody waits for it");
}

#[test]
fn a_change_that_nothing_looks_at_is_not_waited_for() {
    let mut talk = Talk::of(submission("hi"));
    talk.all([call("a", "change", json!({})), ends(EndReason::ToolUse), proposing(1)]);
    let next = talk.says(ran(1, ""));
    assert!(next.contains("call m with") && !next.contains("check"), "{next}");
}

#[test]
fn no_more_than_eight_readers_run_at_a_time() {
    let mut talk = Talk::begin();
    talk.all((1..=10).map(|it| call(&format!("c{it}"), "look", json!({}))));
    talk.says(ends(EndReason::ToolUse));
    let started: String = (1..=10).map(|it| talk.says(harmless(it))).collect();
    assert_eq!(started.matches("run ").count(), 8);
    assert!(talk.says(ran(1, "x")).ends_with("run 9 look"));
    assert!(talk.says(ran(2, "x")).ends_with("run 10 look"));
}

#[test]
fn a_call_that_cannot_be_is_answered_and_the_model_goes_on() {
    let cases: Vec<(&str, Mode, Input, &str)> = vec![
        (
            "an unknown tool",
            Mode::Agent,
            call("a", "gr\nep", json!({})),
            "!a: Error [TOOL_UNKNOWN]: unknown tool `grep`\nThe tools are: look, change, run, ask, switch_mode, todo_write.",
        ),
        (
            "a tool that this model is not offered",
            Mode::Agent,
            call("a", "grep", json!({ "pattern": "x" })),
            "!a: Error [TOOL_FORBIDDEN_IN_MODE]: `grep` is not offered to this model\nGo on without it.",
        ),
        (
            "a change in plan mode",
            Mode::Plan,
            call("a", "change", json!({})),
            "!a: Error [TOOL_FORBIDDEN_IN_MODE]: `change` cannot be used in plan mode\nGo on without it, or ask for another mode with switch_mode.",
        ),
        (
            "a plan in agent mode",
            Mode::Agent,
            call("a", "CreatePlan", json!({ "name": "x", "plan": "y" })),
            "!a: Error [TOOL_FORBIDDEN_IN_MODE]: `create_plan` cannot be used in agent mode\nGo on without it, or ask for another mode with switch_mode.",
        ),
    ];
    for (name, mode, input, want) in cases {
        let mut said = submission("hi");
        said.mode = mode;
        let mut talk = Talk::of(said);
        talk.says(input);
        let shown = talk.says(ends(EndReason::ToolUse));
        assert!(shown.ends_with("call m with 3"), "{name}: {shown}");
        assert_eq!(talk.results(), [want], "{name}");
    }
}

#[test]
fn a_patch_that_is_not_offered_is_shown_as_a_change_of_its_first_file() {
    let mut talk = Talk::begin();
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n*** Delete File: b.rs\n*** End Patch";
    talk.says(call("a", "apply_patch", json!({ "input": patch })));
    let shown = talk.says(ends(EndReason::ToolUse));
    assert!(shown.contains("file_edit") && shown.contains("error"), "{shown}");
    let path = talk.effects.iter().find_map(|it| match it {
        Effect::Append(Event::DocumentEnd { metadata, .. }) => metadata.get("filePath").cloned(),
        _ => None,
    });
    assert_eq!(path, Some("src/a.rs".into()));
}

#[test]
fn arguments_that_are_no_json_are_told_and_no_more_than_three_times() {
    let mut talk = Talk::begin();
    for nth in 1..=3 {
        talk.says(garbled(&format!("a{nth}"), "run", "{\"command\": "));
        let shown = talk.says(ends(EndReason::ToolUse));
        let results = talk.results();
        let [result] = results.as_slice() else {
            panic!("{results:?}")
        };
        assert!(
            result.starts_with(&format!("!a{nth}: Error [TOOL_ARGUMENTS_INVALID]")),
            "{result}"
        );
        assert_eq!(shown.ends_with("done error error"), nth == 3, "{shown}");
    }
    let calls: Vec<&Map<String, Value>> = talk
        .turn
        .memory
        .history
        .messages
        .iter()
        .filter_map(|it| match it {
            ModelMessage::Assistant(said) => Some(said),
            ModelMessage::User(_) | ModelMessage::Results(_) => None,
        })
        .flatten()
        .filter_map(|it| match it {
            Said::Call(call) => Some(&call.arguments),
            Said::Text(_) | Said::Opaque(_) => None,
        })
        .collect();
    assert!(
        calls.len() == 3 && calls.iter().all(|it| it.is_empty()),
        "nothing garbled is remembered"
    );
}

#[test]
fn a_call_in_a_message_that_broke_off_never_runs() {
    for ending in [fails(FailureKind::Interrupted), Input::Cancel, ends(EndReason::Refusal)] {
        let mut talk = Talk::begin();
        talk.all([says("Now"), call("a", "run", json!({ "command": "rm -r ." }))]);
        let shown = talk.says(ending);
        assert!(!shown.contains("prepare") && shown.contains("done"), "{shown}");
        let is_text = |it: &Said| matches!(it, Said::Text(_));
        let kept = talk.turn.memory.history.messages.iter().all(|it| match it {
            ModelMessage::Assistant(said) => said.iter().all(is_text),
            ModelMessage::User(_) => true,
            ModelMessage::Results(_) => false,
        });
        assert!(kept, "{:?}", talk.turn.memory.history.messages);
    }
}

#[test]
fn cancelling_answers_every_call() {
    let mut talk = Talk::begin();
    talk.all([
        call("a", "look", json!({})),
        call("b", "run", json!({ "command": "cargo test" })),
        call("c", "ask", json!({ "questions": ["Why?"] })),
        ends(EndReason::ToolUse),
        harmless(1),
        touching(2, command("cargo test")),
    ]);
    assert_eq!(
        talk.says(Input::Cancel),
        r#"stop jobs | -doc_002 cancelled | = "error" "cancelled" | -doc_001 | done completed cancelled"#
    );
    assert_eq!(
        talk.results(),
        [
            "!a: Cancelled by the user.",
            "!b: Cancelled by the user.",
            "!c: Cancelled by the user."
        ]
    );
    assert_eq!(talk.says(ran(1, "late")), "");
}

#[test]
fn todos_are_kept_and_told_back() {
    let mut talk = Talk::begin();
    let todos = json!({ "merge": false, "todos": [{ "id": "a", "content": "A", "status": "done" }, { "id": "b", "content": "B" }] });
    talk.says(call("t", "todo_write", todos));
    assert_eq!(
        talk.says(ends(EndReason::ToolUse)),
        "response of m | +1 todo_update | -doc_001 | call m with 3"
    );
    assert_eq!(talk.results(), ["t: - [x] A (a)\n- [ ] B (b)"]);
}

#[test]
fn calls_wrapped_into_one_get_one_result() {
    let mut talk = Talk::begin();
    let uses = json!({ "tool_uses": [
        { "recipient_name": "functions.look", "parameters": {} },
        { "recipient_name": "functions.look", "parameters": { "file_path": "b" } },
    ] });
    talk.all([
        call("a", "multi_tool_use.parallel", uses),
        ends(EndReason::ToolUse),
        harmless(1),
        harmless(2),
        ran(2, "two"),
    ]);
    talk.says(ran(1, "one"));
    assert_eq!(talk.results(), ["a: 1. look\none\n\n2. look\ntwo"]);
}

#[test]
fn ids_are_made_unique() {
    let mut talk = Talk::begin();
    talk.all([
        call("", "look", json!({})),
        call("", "look", json!({})),
        call("call", "look", json!({})),
        ends(EndReason::ToolUse),
        harmless(1),
        harmless(2),
        harmless(3),
        ran(1, "1"),
        ran(2, "2"),
        ran(3, "3"),
    ]);
    assert_eq!(talk.results(), ["call_2: 1", "call_3: 2", "call: 3"]);
}
