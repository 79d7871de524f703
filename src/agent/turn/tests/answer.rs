//! An answer that is text: its documents, its ends, and what is said to it while it is made.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn an_answer_becomes_documents() {
    check(
        "text, code and an end",
        [
            says("Look:\n"),
            says("```rust\nfn"),
            says(" a() {}\n```"),
            ends(EndReason::Stop),
        ],
        r#"response of m | +1 text | "Look:"
           -doc_001 | +2 code_block | "fn"
           " a() {}"
           -doc_002 | done completed stop"#,
    );
    check(
        "code without its last fence, at the end",
        [says("```c\nx;"), ends(EndReason::Stop)],
        r#"response of m | +1 code_block | "x;"
           -doc_001 incomplete | done completed stop"#,
    );
    check(
        "thinking is no document",
        [thinks("hm"), thinks("."), says("hi"), ends(EndReason::Stop)],
        r#"response of m | thinking "hm"
           thinking "."
           +1 text | "hi"
           -doc_001 | done completed stop"#,
    );
    check(
        "an unknown reason is an end that is spoken of",
        [says("hi"), ends(EndReason::Other("cosmic_ray".to_owned()))],
        r#"response of m | +1 text | "hi"
           -doc_001 | notice unknown-finish-reason | done completed stop"#,
    );
    check(
        "progress comes before the response",
        [
            Input::Piece(Piece::Progress(Progress::Idle)),
            Input::Piece(Piece::Start {
                response_id: None,
                model: Some("m-2024".to_owned()),
            }),
            says("hi"),
            ends(EndReason::Stop),
        ],
        r#"progress Idle

           response of m | +1 text | "hi"
           -doc_001 | done completed stop"#,
    );
}

#[test]
fn an_answer_that_fails_keeps_what_came() {
    check(
        "in mid-text",
        [says("so "), fails(FailureKind::Overloaded)],
        r#"response of m | +1 text | "so"
           -doc_001 incomplete | +2 error | "it broke" | -doc_002 LLM_OVERLOADED | done error error"#,
    );
    check(
        "in a fence",
        [says("a\n```c\nx"), fails(FailureKind::Interrupted)],
        r#"response of m | +1 text | "a" | -doc_001 | +2 code_block | "x"
           -doc_002 incomplete | +3 error | "it broke" | -doc_003 STREAM_INTERRUPTED | done error interrupted"#,
    );
    check(
        "before anything",
        [fails(FailureKind::Key)],
        r#"response of m | +1 error | "it broke" | -doc_001 LLM_AUTH | done error error"#,
    );
    check(
        "with nothing at all",
        [ends(EndReason::Stop)],
        r#"response of m | +1 error | "the model's answer is empty" | -doc_001 LLM_BAD_RESPONSE | done error error"#,
    );
    check(
        "with white space only",
        [says("\n \n"), ends(EndReason::Stop)],
        r#"
           response of m | +1 error | "the model's answer is empty" | -doc_001 LLM_BAD_RESPONSE | done error error"#,
    );
}

#[test]
fn cancelling_ends_at_once() {
    check(
        "before the first word",
        [Input::Cancel, says("late"), ends(EndReason::Stop)],
        "stop | response of m | done completed cancelled\n\n",
    );
    check(
        "in mid-text",
        [says("so "), Input::Cancel, says("late"), Input::Cancel],
        r#"response of m | +1 text | "so"
           stop | -doc_001 | done completed cancelled

        "#,
    );
    check(
        "in a fence",
        [says("```\nx"), Input::Cancel],
        r#"response of m | +1 code_block | "x"
           stop | -doc_001 incomplete | done completed cancelled"#,
    );
    assert!(Turn::default().step(Input::Cancel, 0).is_empty(), "nothing runs");
}

#[test]
fn ends_that_the_user_must_act_on_are_said() {
    check(
        "the limit",
        [says("so"), ends(EndReason::Length)],
        r#"response of m | +1 text | "so"
           -doc_001 incomplete | +2 error | "the answer reached the limit of tokens" | -doc_002 LLM_CONTEXT_LENGTH | done completed length"#,
    );
    check(
        "the limit in mid-thought",
        [thinks("hm"), ends(EndReason::Length)],
        r#"response of m | thinking "hm"
           +1 error | "the limit of tokens was used up by thinking" | -doc_001 LLM_CONTEXT_LENGTH | done completed length"#,
    );
    check(
        "a filter",
        [says("so"), ends(EndReason::ContentFilter)],
        r#"response of m | +1 text | "so"
           -doc_001 incomplete | +2 error | "a filter at the provider's stopped the answer" | -doc_002 LLM_REFUSAL | done completed refusal"#,
    );
    check(
        "a refusal speaks for itself",
        [Input::Piece(Piece::Refusal("No.".to_owned())), ends(EndReason::Refusal)],
        r#"response of m | +1 text | "No."
           -doc_001 | done completed refusal"#,
    );
    check(
        "a refusal after text",
        [says("so"), ends(EndReason::Refusal)],
        r#"response of m | +1 text | "so"
           -doc_001 | +2 error | "the model declined to continue; what it wrote is not a complete answer" | -doc_002 LLM_REFUSAL | done completed refusal"#,
    );
    check(
        "a silent refusal",
        [ends(EndReason::Refusal)],
        r#"response of m | +1 error | "the model declined to answer" | -doc_001 LLM_REFUSAL | done completed refusal"#,
    );
}

#[test]
fn what_is_known_of_an_answer_is_told() {
    let mut turn = Turn::default();
    let mut submission = submission("hi");
    submission.setup.model.name = String::new();
    let now = 1_772_439_300_000;
    turn.step(Input::Submit(Box::new(submission)), now);
    let start = Piece::Start {
        response_id: Some("c".to_owned()),
        model: Some("served".to_owned()),
    };
    turn.step(Input::Piece(start), now + 5);
    let started = turn.step(says("hi"), now + 10);
    let Some(Effect::Append(Event::ResponseStart(start))) = started.first() else {
        panic!("{started:?}")
    };
    assert_eq!(
        start,
        &ResponseStart {
            id: Some("chat_1".into()),
            conversation_id: Some("conv_1".into()),
            model: Some("served".to_owned()),
            mode: Some(Mode::Agent),
            created: Some("2026-03-02T08:15:00Z".to_owned()),
            capabilities: vec!["live_input".to_owned()],
            ..ResponseStart::default()
        }
    );
    turn.step(counts(5, 1), now + 20);
    turn.step(counts(5, 3), now + 30);
    let ended = turn.step(ends(EndReason::Stop), now + 3900);
    let Some(Effect::Append(Event::Done(done))) = ended.last() else {
        panic!("{ended:?}")
    };
    assert_eq!(
        done,
        &Done {
            usage: Some(Usage {
                prompt_tokens: 5,
                completion_tokens: 3,
                total_tokens: 8
            }),
            id: Some("chat_1".into()),
            conversation_id: Some("conv_1".into()),
            status: Some(Status::Completed),
            finish_reason: Some(FinishReason::Stop),
            duration_ms: Some(3900),
            tool_call_count: Some(0),
            turn_count: Some(1),
            extra_usage: object(json!({ "contextTokens": 8 })),
            ..Done::default()
        }
    );
}

#[test]
fn an_error_says_what_to_do() {
    let mut turn = Turn::default();
    turn.step(submit("hi"), 0);
    let effects = turn.step(fails(FailureKind::Key), 0);
    let details = effects.iter().find_map(|it| match it {
        Effect::Append(Event::DocumentEnd { metadata, .. }) => metadata.get("details").cloned(),
        _ => None,
    });
    let want = "the server says: boom\ncheck the key: `sheaf login` shows where it comes from and stores \
                another";
    assert_eq!(details, Some(json!(want)));
}

#[test]
fn the_next_message_follows_the_conversation() {
    let mut turn = Turn::default();
    turn.memory.history.messages = vec![ModelMessage::user("hi"), ModelMessage::assistant("hello")];
    let mut next = submission("and now?");
    next.mode = Mode::Plan;
    let effects = turn.step(Input::Submit(Box::new(next)), 0);
    assert_eq!(show(&effects), r#"user "and now?" | call m with 3"#, "no second title");
    assert_eq!(asked(&effects).messages.last(), Some(&ModelMessage::user("and now?")));
    assert!(turn.step(submit("more"), 0).is_empty(), "one answer at a time");
    assert!(turn.is_running());
}

#[test]
fn titles() {
    let long = "x".repeat(61);
    let cut = format!("{}…", "x".repeat(60));
    let cases: &[(&str, Option<&str>)] = &[
        ("hello", Some("hello")),
        ("\n\n  ## Fix   the cart \nplease", Some("Fix the cart")),
        ("```\ncode\n```", Some("code")),
        ("---\n日本語", Some("日本語")),
        (&long, Some(&cut)),
        ("", None),
        ("???", None),
    ];
    for (message, want) in cases {
        assert_eq!(title(message).as_deref(), *want, "{message:?}");
    }
}

#[test]
fn what_is_said_in_between_is_heard_before_the_next_request() {
    let mut talk = Talk::begin();
    let steer = || Input::Steer {
        message: Message::user("use tabs"),
        parts: vec![Part::Text("use tabs".to_owned())],
        mode: Mode::Agent,
    };
    talk.all([
        call("a", "look", json!({})),
        steer(),
        ends(EndReason::ToolUse),
        harmless(1),
    ]);
    assert_eq!(
        talk.says(ran(1, "x")),
        r#"= "success" "x" | -doc_001 | +2 text | "use tabs" | -doc_002 | call m with 4"#
    );
    assert_eq!(
        asked(&talk.effects).messages.last(),
        Some(&ModelMessage::user("use tabs"))
    );
    talk.all([says("Ok."), steer()]);
    let shown = talk.says(ends(EndReason::Stop));
    assert!(
        shown.ends_with(r#"+4 text | "use tabs" | -doc_004 | call m with 6"#),
        "it is no end while something was said: {shown}"
    );
}

#[test]
fn an_overloaded_model_is_stood_in_for_before_it_said_anything() {
    let mut said = submission("hi");
    said.setup.model.fallbacks = 1;
    let mut talk = Talk::of(said.clone());
    assert_eq!(
        talk.says(fails(FailureKind::Overloaded)),
        "response of m | notice stand-in | call stand-in 1 with 1"
    );
    assert!(talk.says(fails(FailureKind::Overloaded)).ends_with("done error error"));
    let mut talk = Talk::of(said);
    talk.says(says("So"));
    assert!(
        talk.says(fails(FailureKind::Overloaded)).ends_with("done error error"),
        "half an answer is not asked for again"
    );
}

#[test]
fn marks_that_debugging_left_are_no_end() {
    let mut said = submission("hi");
    said.mode = Mode::Debug;
    let mut talk = Talk::of(said);
    talk.says(says("Fixed."));
    assert_eq!(talk.says(ends(EndReason::Stop)), "-doc_001 | find marks");
    assert_eq!(talk.says(Input::Marks(vec!["a.rs:3".to_owned()])), "call m with 3");
    talk.says(says("Removed."));
    talk.says(ends(EndReason::Stop));
    assert_eq!(
        talk.says(Input::Marks(Vec::new())),
        r#"+3 text | "*All marks of instrumentation are removed.*" | -doc_003 | done completed stop"#
    );
    let marked = || Input::Marks(vec!["a.rs:3".to_owned()]);
    let twice = || {
        let mut said = submission("hi");
        said.mode = Mode::Debug;
        let mut talk = Talk::of(said);
        talk.all([
            says("Look."),
            ends(EndReason::Stop),
            marked(),
            says("Yes."),
            ends(EndReason::Stop),
        ]);
        talk
    };
    // The card: only the user can say whether it happens.
    let mut talk = twice();
    assert_eq!(
        talk.says(marked()),
        r#"+3 clarification | "The fault is being watched: instrumentation is at a.rs:3." | ~Reproduce the fault now. What happened? reproduced/gone/leave"#
    );
    let last = |talk: &Talk| asked(&talk.effects).messages.last().cloned();
    talk.says(answer("doc_003", "reproduced"));
    assert_eq!(
        last(&talk),
        Some(ModelMessage::user(
            "The user has reproduced the fault. Read what was logged, and go on."
        ))
    );
    talk.all([says("Mended."), ends(EndReason::Stop), marked()]);
    talk.says(answer("doc_005", "gone"));
    assert_eq!(
        last(&talk),
        Some(ModelMessage::user(
            "The user says that the fault is gone. Remove the marks at a.rs:3 now."
        ))
    );
    talk.all([says("Removed."), ends(EndReason::Stop)]);
    assert!(talk.says(Input::Marks(Vec::new())).ends_with("done completed stop"));
    // A message says it as well; without a word, what is left is said, and it is not done.
    let mut talk = twice();
    talk.says(marked());
    talk.says(Input::Steer {
        message: Message::user("it crashed"),
        parts: vec![Part::Text("it crashed".to_owned())],
        mode: Mode::Debug,
    });
    assert_eq!(last(&talk), Some(ModelMessage::user("it crashed")));
    let mut talk = twice();
    talk.says(marked());
    let shown = talk.says(answer("doc_003", "leave"));
    assert!(
        shown.contains(r#""instrumentation is left: a.rs:3""#) && shown.ends_with("done completed awaiting_input"),
        "{shown}"
    );
    // Nobody is there to reproduce anything.
    let mut said = submission("hi");
    said.mode = Mode::Debug;
    said.setup.asker = Asker::Nobody;
    let mut talk = Talk::of(said);
    talk.all([
        says("Look."),
        ends(EndReason::Stop),
        marked(),
        says("Yes."),
        ends(EndReason::Stop),
    ]);
    let shown = talk.says(marked());
    assert!(
        shown.contains(r#""instrumentation is left: a.rs:3""#) && shown.ends_with("done completed awaiting_input"),
        "{shown}"
    );
}

#[test]
fn what_is_said_in_between_is_answered_after_a_cut_answer_and_after_a_plan() {
    let steer = |mode| Input::Steer {
        message: Message::user("use tabs"),
        parts: vec![Part::Text("use tabs".to_owned())],
        mode,
    };
    let mut talk = Talk::begin();
    talk.all([says("So"), steer(Mode::Agent)]);
    let shown = talk.says(ends(EndReason::Length));
    assert!(shown.ends_with("call m with 3"), "the limit of tokens: {shown}");

    let mut talk = Talk::begin();
    talk.all([thinks("hm"), steer(Mode::Agent)]);
    let shown = talk.says(ends(EndReason::Stop));
    assert!(shown.ends_with("call m with 3"), "nothing was said: {shown}");

    let mut said = submission("hi");
    said.mode = Mode::Plan;
    let mut talk = Talk::of(said);
    talk.all([
        call("a", "create_plan", json!({ "name": "n", "overview": "o", "plan": "p" })),
        steer(Mode::Plan),
    ]);
    let shown = talk.says(ends(EndReason::ToolUse));
    assert!(
        shown.contains("+1 plan") && shown.ends_with(r#"+2 text | "use tabs" | -doc_002 | call m with 4"#),
        "the plan does not end what the user has an objection to: {shown}"
    );
    // The next plan does.
    talk.says(call(
        "b",
        "create_plan",
        json!({ "name": "n", "overview": "o", "plan": "p, with tabs" }),
    ));
    let shown = talk.says(ends(EndReason::ToolUse));
    assert!(shown.ends_with("done completed awaiting_input"), "{shown}");
}

#[test]
fn a_message_without_an_answer_is_closed_before_the_next_one() {
    let stopped = "(The user stopped this before an answer came.)";
    let failed = "(No answer came.)";
    let cases: [(&str, Vec<Input>, Option<&str>); 6] = [
        ("stopped at once", vec![Input::Cancel], Some(stopped)),
        (
            "stopped in mid-thought",
            vec![thinks("hm"), Input::Cancel],
            Some(stopped),
        ),
        ("failed", vec![fails(FailureKind::Key)], Some(failed)),
        ("a silent refusal", vec![ends(EndReason::Refusal)], Some(failed)),
        (
            "stopped in mid-text: that is an answer",
            vec![says("So"), Input::Cancel],
            None,
        ),
        (
            "stopped in a call: its result was not sent",
            vec![call("a", "look", json!({})), ends(EndReason::ToolUse), Input::Cancel],
            None,
        ),
    ];
    for (name, inputs, want) in cases {
        let mut talk = Talk::begin();
        talk.all(inputs);
        let before = talk.turn.memory.history.messages.clone();
        talk.effects = talk.turn.step(submit("more"), 0);
        let messages = &asked(&talk.effects).messages;
        assert_eq!(messages[..before.len()], before[..], "{name}");
        if let Some(want) = want {
            assert_eq!(before.last(), Some(&ModelMessage::assistant(want)), "{name}");
        }
        assert_eq!(messages.last(), Some(&ModelMessage::user("more")), "{name}");
        assert_eq!(messages.len(), before.len() + 1, "{name}");
    }
    // In the midst of a task: what was found out was sent, and nothing came back.
    let mut talk = Talk::begin();
    talk.all([
        call("a", "look", json!({})),
        ends(EndReason::ToolUse),
        harmless(1),
        ran(1, "x"),
        Input::Cancel,
    ]);
    assert_eq!(
        talk.turn.memory.history.messages.last(),
        Some(&ModelMessage::assistant(stopped))
    );
}

#[test]
fn what_is_said_in_another_mode_takes_the_answer_there() {
    let mut talk = Talk::begin();
    let offered = |talk: &Talk| asked(&talk.effects).tools.iter().any(|it| it.name == "change");
    assert!(offered(&talk));
    talk.all([
        call("a", "look", json!({})),
        ends(EndReason::ToolUse),
        harmless(1),
        Input::Steer {
            message: Message::user("plan it first"),
            parts: vec![Part::Text("plan it first".to_owned())],
            mode: Mode::Plan,
        },
    ]);
    let shown = talk.says(ran(1, "x"));
    assert!(shown.contains("did-change-mode") && shown.contains("plan"), "{shown}");
    assert!(
        offered(&talk),
        "the list stays, so that servers know the beginning again"
    );
    assert_eq!(talk.turn.mode(), Some(Mode::Plan));
    talk.says(call("b", "change", json!({ "file_path": "a" })));
    let shown = talk.says(ends(EndReason::ToolUse));
    assert!(shown.contains("TOOL_FORBIDDEN_IN_MODE"), "{shown}");
}

#[test]
fn all_modes_have_the_same_list_of_tools_unless_a_client_has_named_them_or_the_model_is_small() {
    for is_by_mode in [false, true] {
        let lists = Mode::ALL.map(|mode| {
            let mut said = submission_with("hi", |it| it.tools = std::mem::take(&mut it.tools).by_mode(is_by_mode));
            said.mode = mode;
            let talk = Talk::of(said);
            asked(&talk.effects)
                .tools
                .iter()
                .map(|it| it.name.clone())
                .collect::<Vec<_>>()
        });
        let [agent, plan, ..] = &lists;
        assert_eq!(lists.iter().all(|it| it == agent), !is_by_mode, "{lists:?}");
        assert_eq!(plan.contains(&"change".to_owned()), !is_by_mode, "{lists:?}");
        assert!(plan.contains(&"create_plan".to_owned()) && plan.contains(&"look".to_owned()));
    }
}

#[test]
fn another_prompt_for_the_same_model_is_told_in_a_message_and_changed_tools_are_said() {
    let mut turn = Turn::default();
    let mut say = |system: &str, maker: &str, keeps: &dyn Fn(&Tool) -> bool| {
        let mut said = submission_with("hi", |it| {
            it.model.system = system.to_owned().into();
            it.tools = it.tools.filtered(keeps);
        });
        said.maker = maker.to_owned();
        let effects = turn.step(Input::Submit(Box::new(said)), 0);
        let request = asked(&effects).clone();
        turn.step(says("ok"), 0);
        turn.step(ends(EndReason::Stop), 0);
        let notice = effects.iter().find_map(|it| match it {
            Effect::Append(Event::Notice(notice)) => Some(notice.message.clone()),
            _ => None,
        });
        (request.system, format!("{:?}", request.messages.last()), notice)
    };
    let all = |_: &Tool| true;
    let (system, last, notice) = say("<a>\nOne.\n</a>\n", "m", &all);
    assert_eq!((&*system, notice), ("<a>\nOne.\n</a>\n", None));
    assert!(!last.contains("system_reminder"), "{last}");
    let (system, last, notice) = say("<a>\nTwo.\n</a>\n", "m", &all);
    assert_eq!((&*system, notice), ("<a>\nOne.\n</a>\n", None));
    assert!(last.contains("system_reminder") && last.contains("Two."), "{last}");
    let (_, last, _) = say("<a>\nTwo.\n</a>\n", "m", &all);
    assert!(!last.contains("Two."), "it is told once: {last}");
    let (_, last, _) = say("<a>\nTwo.\n</a>\n<b>\nMore.\n</b>\n", "m", &all);
    assert!(
        last.contains("holds again, but for this:") && last.contains("Two.") && last.contains("More."),
        "{last}"
    );
    let (_, last, _) = say("<a>\nOne.\n</a>\n", "m", &all);
    assert!(last.contains("holds again."), "a change back is told: {last}");
    let (_, last, _) = say("<a>\nOne.\n</a>\n", "m", &all);
    assert!(!last.contains("holds again"), "{last}");
    let (_, last, _) = say("<a>\nTwo.\n</a>\n", "m", &all);
    assert!(last.contains("Two.") && !last.contains("holds again"), "{last}");
    let (_, _, notice) = say("<a>\nTwo.\n</a>\n", "m", &|it| it.name != "change");
    assert_eq!(notice.as_deref(), Some("cache lost: tools changed: change"));
    let (system, last, notice) = say("<a>\nTwo.\n</a>\n", "another", &all);
    assert_eq!(
        (&*system, notice),
        ("<a>\nTwo.\n</a>\n", None),
        "another model has another cache"
    );
    assert!(!last.contains("system_reminder"), "{last}");
}

#[test]
fn a_model_that_sees_no_images_is_told_where_one_stands() {
    let pixel = || crate::models::Image {
        media_type: "image/png".to_owned(),
        bytes: b"png".as_slice().into(),
    };
    for is_blind in [true, false] {
        let mut talk = Talk::of(Submission {
            parts: vec![Part::Text("what is this?".to_owned()), Part::Image(pixel())],
            ..submission_with("hi", |it| it.model.is_blind = is_blind)
        });
        let has_image = |talk: &Talk| format!("{:?}", asked(&talk.effects).messages).contains("image/png");
        assert_eq!(has_image(&talk), !is_blind);
        talk.all([call("a", "look", json!({})), ends(EndReason::ToolUse), harmless(1)]);
        talk.says(Input::Ran {
            job: JobId(1),
            result: Ok(Outcome {
                text: "`a.png` is an image.".to_owned(),
                images: vec![pixel()],
                ..Outcome::default()
            }),
            took_ms: 1,
        });
        assert_eq!(has_image(&talk), !is_blind);
        let told = format!("{:?}", asked(&talk.effects).messages);
        assert_eq!(told.contains("You cannot see images"), is_blind, "{told}");
        // They are kept for a model that does.
        assert_eq!(
            format!("{:?}", talk.turn.memory.history.messages)
                .matches("image/png")
                .count(),
            2
        );
    }
}
