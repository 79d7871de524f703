//! What waits for the user: approvals, forms, plans and other modes.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn a_command_asks_and_runs_with_its_output() {
    let mut talk = Talk::begin();
    talk.says(call("a", "run", json!({ "command": "cargo test" })));
    assert_eq!(talk.says(ends(EndReason::ToolUse)), "prepare 1 run");
    let asked = talk.says(touching(1, command("cargo test")));
    assert!(asked.starts_with("response of m | +1 clarification"), "{asked}");
    assert!(
        asked.contains("Run this command? allow_once/allow_session/allow_always/reject_once"),
        "{asked}"
    );
    assert_eq!(
        talk.says(answer("doc_001", "allow_once")),
        "-doc_001 answered | +2 terminal_command | run 1 run"
    );
    let output = |text: &str| Input::Output {
        job: JobId(1),
        text: text.to_owned(),
    };
    assert_eq!(talk.says(output("building\n")), "~building\n");
    let done = Input::Ran {
        job: JobId(1),
        result: Ok(Outcome {
            text: "building\nexit code: 2".to_owned(),
            data: json!({ "exitCode": 2, "output": "building\n", "durationMs": 9, "state": "completed", "logPath": null }),
            ..Outcome::default()
        }),
        took_ms: 10,
    };
    assert_eq!(talk.says(done), "-doc_002 completed | call m with 3");
    assert_eq!(
        talk.results(),
        ["a: building\nexit code: 2"],
        "a code other than 0 is no error of the tool's"
    );
}

/// The metadata of the question that was asked last.
fn asked_last(talk: &Talk) -> Map<String, Value> {
    let found = talk.effects.iter().rev().find_map(|it| match it {
        Effect::Append(Event::MetadataDelta { metadata, .. }) if metadata.contains_key("subject") => Some(metadata),
        _ => None,
    });
    found.cloned().expect("a question was asked")
}

#[test]
fn an_approval_says_why_where_it_reaches_and_what_always_stores() {
    for (name, said, explanation, why) in [
        ("the call's own reason", "Well.", "Publish it.", json!("Publish it.")),
        (
            "the text before the call",
            "\nI publish the fix.\nThen CI runs.",
            "",
            json!("I publish the fix."),
        ),
        ("nothing", "", "", Value::Null),
    ] {
        let mut submission = submission("hi");
        submission.policy.file = "~/.config/sheaf/config.toml".to_owned();
        let mut talk = Talk::of(submission);
        if !said.is_empty() {
            talk.says(says(said));
        }
        let line = "git push origin main";
        talk.all([
            call("a", "run", json!({ "command": line, "explanation": explanation })),
            call("b", "look", json!({})),
            ends(EndReason::ToolUse),
        ]);
        let mut accesses = command(line);
        if let Some(Access::Command { permissions, .. }) = accesses.first_mut() {
            permissions.push(crate::protocol::Permission::Network);
        }
        talk.says(Input::Prepared {
            job: JobId(1),
            result: Ok(Prepared {
                accesses,
                proposal: None,
                preview: Preview::default(),
                tier: Tier::Full,
                limit_reached: None,
                gaps: String::new(),
                is_new_repository: false,
                hook: HookVerdict::default(),
                remotes: vec!["github.com".to_owned()],
            }),
        });
        let asked = asked_last(&talk);
        let planned = &asked["subject"]["metadata"];
        assert_eq!(planned.get("why").cloned().unwrap_or_default(), why, "{name}");
        assert_eq!(planned["wouldReach"], json!(["github.com"]), "{name}");
        let always = asked["questions"][0]["options"][2]["description"].as_str();
        assert_eq!(
            always,
            Some("Shell(git push) with network in ~/.config/sheaf/config.toml"),
            "{name}"
        );
    }
}

#[test]
fn a_reason_that_was_given_before_an_earlier_call_of_the_turn_counts() {
    let mut talk = Talk::begin();
    talk.all([
        says("I publish the fix, after a look."),
        call("a", "look", json!({})),
        ends(EndReason::ToolUse),
        harmless(1),
        ran(1, "x"),
        call("b", "run", json!({ "command": "git push" })),
        ends(EndReason::ToolUse),
    ]);
    talk.says(touching(2, command("git push")));
    let asked = asked_last(&talk);
    assert_eq!(asked["subject"]["metadata"]["why"], "I publish the fix, after a look.");
}

#[test]
fn a_failed_change_says_in_its_own_document_why() {
    let mut talk = Talk::begin();
    talk.all([call("a", "change", json!({})), ends(EndReason::ToolUse)]);
    let fault = Fault::new("EDIT_NO_MATCH", "not found in `a.rs`").hint("Read the file again.");
    let shown = talk.says(Input::Prepared {
        job: JobId(1),
        result: Err(fault),
    });
    assert!(shown.contains("file_edit") && shown.contains("error"), "{shown}");
    let failure = talk.effects.iter().find_map(|it| match it {
        Effect::Append(Event::DocumentEnd { metadata, .. }) => metadata.get("failure").cloned(),
        _ => None,
    });
    let expected =
        json!({ "errorCode": "EDIT_NO_MATCH", "message": "not found in `a.rs`", "details": "Read the file again." });
    assert_eq!(failure, Some(expected));
}

#[test]
fn what_the_user_rejects_is_not_done_and_the_model_hears_why() {
    let mut talk = Talk::begin();
    talk.says(call("a", "run", json!({ "command": "cargo test" })));
    talk.all([ends(EndReason::ToolUse), touching(1, command("cargo test"))]);
    let reason = Input::Answer(ClarificationResponse {
        document_id: "doc_001".into(),
        outcome: Dealt::Answered,
        answers: vec![QuestionAnswer {
            question_id: "approval".to_owned(),
            selected_option_ids: vec!["reject_once".to_owned()],
            free_text: Some("use ninja".to_owned()),
            hunks: Vec::new(),
        }],
        reason: None,
    });
    assert_eq!(
        talk.says(reason),
        "-doc_001 answered | +2 terminal_command | -doc_002 rejected | call m with 3"
    );
    assert_eq!(
        talk.results(),
        [
            "!a: Error [TOOL_REJECTED]: the user rejected this; reason: use ninja\nDo not try the same thing in another way. Go on without it, or ask."
        ]
    );
}

#[test]
fn questions_of_a_message_are_asked_together_and_a_rule_answers_the_rest() {
    let mut talk = Talk::begin();
    talk.all([
        call("a", "run", json!({ "command": "cargo test" })),
        call("b", "run", json!({ "command": "cargo test" })),
        ends(EndReason::ToolUse),
        touching(1, command("cargo test")),
    ]);
    assert!(
        talk.says(touching(2, command("cargo test")))
            .contains("+2 clarification")
    );
    let shown = talk.says(answer("doc_001", "allow_session"));
    assert_eq!(
        shown, "-doc_001 answered | +3 terminal_command | run 1 run | -doc_002 skipped",
        "the second waits for the first, and asks no more"
    );
    let over = Input::Ran {
        job: JobId(1),
        result: Ok(Outcome::default()),
        took_ms: 1,
    };
    assert_eq!(talk.says(over), "-doc_003 completed | +4 terminal_command | run 2 run");
}

#[test]
fn a_question_of_the_models_is_answered() {
    let mut talk = Talk::begin();
    let form =
        json!({ "title": "Two things", "questions": [{ "id": "q", "prompt": "Which?", "options": ["One", "Two"] }] });
    talk.says(call("a", "AskQuestion", form));
    assert_eq!(
        talk.says(ends(EndReason::ToolUse)),
        r#"response of m | +1 clarification | "Two things" | ~Which? One/Two"#
    );
    let dealt = Input::Answer(ClarificationResponse {
        document_id: "doc_001".into(),
        outcome: Dealt::Answered,
        answers: vec![QuestionAnswer {
            question_id: "q".to_owned(),
            selected_option_ids: vec!["Two".to_owned()],
            free_text: None,
            hunks: Vec::new(),
        }],
        reason: None,
    });
    assert_eq!(talk.says(dealt), "-doc_001 answered | call m with 3");
    assert_eq!(talk.results(), ["a: Which? -> Two"]);
}

#[test]
fn where_nobody_is_there_questions_are_skipped_and_permissions_missing() {
    let mut said = submission("hi");
    said.setup.asker = Asker::Nobody;
    let mut talk = Talk::of(said);
    let mut accesses = command("cargo fetch");
    if let Some(Access::Command { permissions, .. }) = accesses.first_mut() {
        permissions.push(crate::protocol::Permission::Network);
    }
    talk.all([
        call("a", "ask", json!({ "questions": ["Why?"] })),
        call("b", "run", json!({ "command": "cargo fetch" })),
        call("c", "switch_mode", json!({ "target_mode_id": "plan" })),
        ends(EndReason::ToolUse),
        touching(2, accesses),
    ]);
    let results = talk.results();
    assert_eq!(results.len(), 3);
    assert_eq!(
        results[0],
        "a: The user skipped the questions: decide yourself and say what you assumed."
    );
    assert!(results[1].starts_with("!b: Error [TOOL_REJECTED]"), "{}", results[1]);
    assert!(results[2].starts_with("!c: Error [TOOL_REJECTED]"), "{}", results[2]);
}

#[test]
fn a_message_of_its_own_leaves_a_form_and_no_question_about_permission() {
    let form = json!({ "questions": [{ "id": "q", "prompt": "p", "options": [
        { "id": "a", "label": "A" }, { "id": "b", "label": "Bee" },
    ] }] });
    for (given, outcome) in [(None, "skipped"), (Some("b"), "answered")] {
        let mut talk = Talk::begin();
        talk.all([call("a", "ask", form.clone()), ends(EndReason::ToolUse)]);
        let given = given.map(|it| {
            let Input::Answer(mut response) = answer("doc_001", it) else {
                panic!("an answer")
            };
            response.answers[0].question_id = "q".to_owned();
            response
        });
        let shown = talk.says(Input::LeaveForm(given));
        assert!(
            shown.contains(&format!("-doc_001 {outcome}")) && shown.contains("call m with 3"),
            "{shown}"
        );
    }
    let mut talk = Talk::begin();
    talk.all([
        call("a", "run", json!({ "command": "cargo test" })),
        ends(EndReason::ToolUse),
        touching(1, command("cargo test")),
    ]);
    assert_eq!(talk.says(Input::LeaveForm(None)), "");
}

#[test]
fn a_plan_gives_the_user_the_word() {
    let mut said = submission("hi");
    said.mode = Mode::Plan;
    let mut talk = Talk::of(said);
    let plan = json!({ "name": "Codes", "overview": "o", "plan": "# Codes", "todos": [{ "id": "a", "content": "A" }] });
    talk.says(call("p", "create_plan", plan));
    assert_eq!(
        talk.says(ends(EndReason::ToolUse)),
        r##"response of m | +1 plan | "# Codes" | -doc_001 | done completed awaiting_input"##
    );
    assert_eq!(talk.turn.memory.todos.checklist(), "- [ ] A (a)");
    let shown = show(&talk.turn.step(submit("Build it."), 0));
    assert_eq!(shown, r#"user "Build it." | call m with 4"#);
}

#[test]
fn another_mode_needs_a_yes_and_changes_what_is_allowed() {
    let names = |effects: &[Effect]| {
        asked(effects)
            .tools
            .iter()
            .map(|it| it.name.clone())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut said = submission("hi");
    said.mode = Mode::Plan;
    let mut talk = Talk::of(said.clone());
    let all = "look change run ask create_plan switch_mode todo_write";
    assert_eq!(names(&talk.effects), all);
    talk.says(call(
        "m",
        "switch_mode",
        json!({ "target_mode_id": "agent", "explanation": "to build" }),
    ));
    let shown = talk.says(ends(EndReason::ToolUse));
    assert!(
        shown.ends_with("~Switch to agent mode? allow_once/reject_once | expire doc_001"),
        "{shown}"
    );
    talk.says(answer("doc_001", "allow_once"));
    assert_eq!(names(&talk.effects), all);
    assert_eq!(talk.turn.mode(), Some(Mode::Agent));

    let mut talk = Talk::of(said);
    talk.says(call("m", "switch_mode", json!({ "target_mode_id": "agent" })));
    talk.says(ends(EndReason::ToolUse));
    let shown = talk.says(Input::Expired("doc_001".into()));
    assert!(shown.ends_with("call m with 3"), "{shown}");
    assert_eq!(
        talk.results(),
        ["!m: Error [TOOL_REJECTED]: nobody agreed to another mode in time: it stays plan\nGo on in plan mode."]
    );
    assert_eq!(names(&talk.effects), all);
}

#[test]
fn a_program_that_decides_approvals_agrees_to_no_other_mode() {
    let mut said = submission("hi");
    said.mode = Mode::Plan;
    said.setup.asker = Asker::Program;
    let mut talk = Talk::of(said);
    talk.says(call("m", "switch_mode", json!({ "target_mode_id": "agent" })));
    let shown = talk.says(ends(EndReason::ToolUse));
    assert!(!shown.contains("Switch to agent mode?"), "{shown}");
    assert_eq!(talk.turn.mode(), Some(Mode::Plan));
    let [refused] = &talk.results()[..] else {
        panic!("{shown}")
    };
    assert!(
        refused.starts_with("!m: Error [TOOL_REJECTED]: a program decides approvals here")
            && refused.ends_with("in plan mode."),
        "{refused}"
    );
}

#[test]
fn what_the_settings_want_asked_is_not_answered_by_a_yes_to_something_else() {
    let mut settings = crate::config::Settings::default();
    let tool = crate::config::ToolSettings {
        require_approval: true,
        ..crate::config::ToolSettings::default()
    };
    settings.tools.insert("look".to_owned(), tool);
    let mut said = submission("hi");
    said.setup.settings = Arc::new(settings);
    let mut talk = Talk::of(said);
    talk.all([
        call("a", "look", json!({})),
        call("b", "look", json!({ "file_path": "b" })),
        ends(EndReason::ToolUse),
        harmless(1),
    ]);
    let shown = talk.says(harmless(2));
    assert!(shown.contains("+2 clarification"), "{shown}");
    let shown = talk.says(answer("doc_001", "allow_once"));
    assert!(
        shown.contains("run 1 look") && !shown.contains("run 2") && !shown.contains("-doc_002"),
        "the second is still asked about: {shown}"
    );
    let shown = talk.says(answer("doc_002", "allow_once"));
    assert!(shown.contains("run 2 look"), "{shown}");
}

#[test]
fn an_answer_that_asks_first_from_now_on_asks_for_the_commands_that_wait() {
    let mut said = submission("hi");
    said.policy.run = RunMode::Force;
    let mut talk = Talk::of(said);
    talk.all([
        call("a", "run", json!({ "command": "make one" })),
        call("b", "run", json!({ "command": "make two" })),
        ends(EndReason::ToolUse),
        touching(1, command("make one")),
    ]);
    let shown = talk.says(touching(2, command("make two")));
    assert!(!shown.contains("clarification") && !shown.contains("run 2"), "{shown}");
    let shown = talk.says(Input::Restrict(Restriction::AsksFirst));
    assert!(shown.contains("clarification") && !shown.contains("run 2"), "{shown}");
    let shown = talk.says(ran(1, "made"));
    assert!(!shown.contains("run 2"), "{shown}");
    let shown = talk.says(answer("doc_002", "allow_once"));
    assert!(shown.contains("run 2 run"), "{shown}");
}

/// A change of `a.rs` in three places, and the answer that says of each whether it is made.
fn asked_by_hunk(says: &[(bool, Option<&str>, Option<&str>)]) -> (Talk, String) {
    let mut said = submission("hi");
    said.policy.run = RunMode::Ask;
    let mut talk = Talk::of(said);
    let hunk = |at: u64| Hunk {
        old: format!("old {at}\n"),
        new: format!("new {at}\n"),
        start: at,
        end: at,
    };
    let text = |word: &str| format!("{word} 1\nsame\nsame\nsame\n{word} 5\nsame\nsame\nsame\n{word} 9\n");
    let change = Change {
        file: place("a.rs"),
        operation: Operation::Edit,
        to: None,
        old: Some(text("old").into_bytes().into()),
        new: Some(text("new").into_bytes().into()),
        hunks: vec![hunk(1), hunk(5), hunk(9)],
        cell: None,
    };
    let proposal = Proposal {
        changes: vec![change],
        text: "changed a.rs".to_owned(),
        data: Map::new(),
    };
    talk.all([call("a", "change", json!({})), ends(EndReason::ToolUse)]);
    let asked = talk.says(Input::Prepared {
        job: JobId(1),
        result: Ok(Prepared {
            accesses: proposal.accesses(),
            proposal: Some(proposal),
            preview: Preview::default(),
            tier: Tier::Partial,
            gaps: String::new(),
            limit_reached: None,
            remotes: Vec::new(),
            is_new_repository: false,
            hook: HookVerdict::default(),
        }),
    });
    assert!(asked.contains("+1 clarification"), "{asked}");
    let hunks = talk.effects.iter().find_map(|it| match it {
        Effect::Append(Event::MetadataDelta { metadata, .. }) => {
            metadata["subject"].pointer("/metadata/hunks").cloned()
        }
        _ => None,
    });
    assert_eq!(
        hunks.expect("they are listed")[1],
        json!({
            "index": 2, "oldString": "old 5\n", "newString": "new 5\n", "startLine": 5, "endLine": 5,
            "contextBefore": "same\nsame\nsame\n", "contextAfter": "same\nsame\nsame\n",
        })
    );
    let hunks = says
        .iter()
        .zip(1..)
        .map(|((accepted, new, comment), index)| HunkAnswer {
            index,
            accepted: *accepted,
            new_string: new.map(str::to_owned),
            comment: comment.map(str::to_owned),
        });
    let shown = talk.says(Input::Answer(ClarificationResponse {
        document_id: "doc_001".into(),
        outcome: Dealt::Answered,
        answers: vec![QuestionAnswer {
            question_id: "approval".to_owned(),
            selected_option_ids: vec!["reject_once".to_owned()],
            free_text: Some("only some".to_owned()),
            hunks: hunks.collect(),
        }],
        reason: None,
    }));
    (talk, shown)
}

#[test]
fn only_the_hunks_that_the_user_accepted_are_made() {
    let (mut talk, shown) = asked_by_hunk(&[
        (true, None, None),
        (false, None, Some("keep it")),
        (true, Some("mine\n"), None),
    ]);
    assert_eq!(shown, "-doc_001 answered | make 1");
    let made = talk.effects.iter().find_map(|it| match it {
        Effect::Make { proposal, .. } => proposal.changes[0].new.as_deref(),
        _ => None,
    });
    assert_eq!(
        made,
        Some("new 1\nsame\nsame\nsame\nold 5\nsame\nsame\nsame\nmine\n".as_bytes())
    );
    assert_eq!(
        talk.says(ran(1, "")),
        "+2 file_edit | \"new 1\\n\" | -doc_002 applied | +3 file_edit | \"new 5\\n\" | -doc_003 rejected | \
         +4 file_edit | \"mine\\n\" | -doc_004 applied | call m with 3"
    );
    let told = talk.results().concat();
    for text in [
        "Changed `a.rs`: 2 lines added, 2 removed.",
        "5|old 5",
        "9|mine",
        "let 2 of 3 hunks of `a.rs` be written",
        "Not written: hunk 2 (line 5). The user says: keep it",
        "Hunk 3 (line 9) was rewritten by the user",
    ] {
        assert!(told.contains(text), "{text}\n{told}");
    }
    assert!(!told.starts_with('!'), "it is no error: {told}");
}

#[test]
fn where_no_hunk_is_accepted_nothing_is_made() {
    let (talk, shown) = asked_by_hunk(&[(false, None, Some("no")), (false, None, None)]);
    assert_eq!(
        shown,
        "-doc_001 answered | +2 file_edit | \"new 1\\n\" | -doc_002 rejected | +3 file_edit | \"new 5\\n\" | -doc_003 rejected | \
         +4 file_edit | \"new 9\\n\" | -doc_004 rejected | call m with 3"
    );
    let told = talk.results().concat();
    assert!(
        told.starts_with("!a: Error [TOOL_REJECTED]: nothing was written") && told.contains("The user says: no"),
        "{told}"
    );
}

/// A call that changes `a.rs` in two places, deletes `b.rs` and makes `c.rs`; what is asked stands as `doc_001` to `doc_003`.
fn three_files() -> Talk {
    let mut said = submission("hi");
    said.policy.run = RunMode::Ask;
    let mut talk = Talk::of(said);
    let hunk = |at: u64| Hunk {
        old: format!("old {at}\n"),
        new: format!("new {at}\n"),
        start: at,
        end: at,
    };
    let edit = Change {
        file: place("a.rs"),
        operation: Operation::Edit,
        to: None,
        old: Some("old 1\nsame\nold 3\n".as_bytes().into()),
        new: Some("new 1\nsame\nnew 3\n".as_bytes().into()),
        hunks: vec![hunk(1), hunk(3)],
        cell: None,
    };
    let delete = Change {
        file: place("b.rs"),
        operation: Operation::Delete,
        old: Some("gone\n".as_bytes().into()),
        new: None,
        hunks: Vec::new(),
        ..edit.clone()
    };
    let create = Change {
        file: place("c.rs"),
        operation: Operation::Create,
        old: None,
        new: Some("made\n".as_bytes().into()),
        hunks: vec![Hunk {
            old: String::new(),
            new: "made\n".to_owned(),
            start: 1,
            end: 0,
        }],
        ..edit.clone()
    };
    let proposal = Proposal {
        changes: vec![edit, delete, create],
        text: "changed".to_owned(),
        data: Map::new(),
    };
    talk.all([call("a", "change", json!({})), ends(EndReason::ToolUse)]);
    let asked = talk.says(Input::Prepared {
        job: JobId(1),
        result: Ok(Prepared {
            accesses: proposal.accesses(),
            proposal: Some(proposal),
            preview: Preview::default(),
            tier: Tier::Partial,
            gaps: String::new(),
            limit_reached: None,
            remotes: Vec::new(),
            is_new_repository: false,
            hook: HookVerdict::default(),
        }),
    });
    assert!(asked.contains("+3 clarification"), "{asked}");
    assert!(asked.contains("rejecting one rejects all"), "{asked}");
    talk
}

/// The first hunk of `a.rs` and not the second.
fn half() -> Input {
    let hunk = |index, accepted| HunkAnswer {
        index,
        accepted,
        new_string: None,
        comment: None,
    };
    Input::Answer(ClarificationResponse {
        document_id: "doc_001".into(),
        outcome: Dealt::Answered,
        answers: vec![QuestionAnswer {
            question_id: "approval".to_owned(),
            selected_option_ids: vec!["reject_once".to_owned()],
            free_text: None,
            hunks: vec![hunk(1, true), hunk(2, false)],
        }],
        reason: None,
    })
}

/// Both hunks of `a.rs`.
fn both() -> Input {
    let hunk = |index| HunkAnswer {
        index,
        accepted: true,
        new_string: None,
        comment: None,
    };
    Input::Answer(ClarificationResponse {
        document_id: "doc_001".into(),
        outcome: Dealt::Answered,
        answers: vec![QuestionAnswer {
            question_id: "approval".to_owned(),
            selected_option_ids: vec!["allow_once".to_owned()],
            free_text: None,
            hunks: vec![hunk(1), hunk(2)],
        }],
        reason: None,
    })
}

fn made(talk: &Talk) -> Option<Vec<String>> {
    talk.effects.iter().find_map(|it| match it {
        Effect::Make { proposal, .. } => Some(proposal.changes.iter().map(|it| it.file.shown.clone()).collect()),
        _ => None,
    })
}

#[test]
fn a_file_that_is_left_out_leaves_the_hunks_of_another() {
    let mut talk = three_files();
    assert_eq!(talk.says(half()), "-doc_001 answered");
    assert_eq!(talk.says(answer("doc_002", "reject_once")), "-doc_002 answered");
    talk.says(answer("doc_003", "allow_once"));
    assert_eq!(made(&talk), Some(vec!["a.rs".to_owned(), "c.rs".to_owned()]));
    let shown = talk.says(ran(1, ""));
    assert!(
        shown.contains("-doc_006 rejected"),
        "the deletion is said to be left out: {shown}"
    );
    let told = talk.results().concat();
    assert!(
        told.contains("The user did not let you delete `b.rs`.") && told.contains("let 1 of 2 hunks of `a.rs`"),
        "{told}"
    );
}

#[test]
fn a_file_whose_hunks_were_all_accepted_is_written_where_another_is_left_out() {
    let mut talk = three_files();
    talk.says(both());
    talk.says(answer("doc_002", "reject_once"));
    talk.says(answer("doc_003", "allow_once"));
    assert_eq!(made(&talk), Some(vec!["a.rs".to_owned(), "c.rs".to_owned()]));
}

#[test]
fn a_rule_does_not_answer_for_the_rest_of_what_is_decided_on_by_hunks() {
    let mut talk = three_files();
    talk.says(half());
    let shown = talk.says(answer("doc_002", "allow_session"));
    assert_eq!(shown, "-doc_002 answered", "the third is still asked");
    assert_eq!(made(&talk), None);
    talk.says(answer("doc_003", "reject_once"));
    assert_eq!(made(&talk), Some(vec!["a.rs".to_owned(), "b.rs".to_owned()]));
}

#[test]
fn a_no_before_any_hunk_was_chosen_is_a_no_to_all_and_says_so() {
    let mut talk = three_files();
    let shown = talk.says(answer("doc_002", "reject_once"));
    assert!(
        shown.contains("-doc_001 skipped") && shown.contains("-doc_003 skipped"),
        "{shown}"
    );
    assert_eq!(made(&talk), None);
    let because = talk.effects.iter().any(|it| {
        matches!(it, Effect::Append(Event::DocumentEnd { metadata, .. })
            if metadata.get("reason").is_some_and(|it| it == "another change of the same call was rejected"))
    });
    assert!(because);
}
