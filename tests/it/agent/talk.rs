//! What the user says and does besides: steering, limits, commands of their own, changes taken back.

use sheaf::{
    config::ConfiguredRule,
    protocol::{Branch, Document},
};

use super::{broken::stage, *};

/// A message may say how hard it is to be thought about, and the next one is as the settings say again.
#[tokio::test]
async fn a_message_says_how_hard_it_is_thought_about() {
    let outside = tempfile::tempdir().expect("a folder");
    let root = workspace(outside.path());
    let script = Script::new(|_, _| ok());
    let mut settings = Settings::default();
    settings.agent.effort = "low".to_owned();
    let mut stage = Stage::new(root.path(), &script, settings, ToolSet::default());
    for (turn, effort) in [Some("high"), None, Some("auto"), Some("nonsense")]
        .into_iter()
        .enumerate()
    {
        let mut message = Message::user("go");
        if let Some(effort) = effort {
            message.extra.insert("effort".to_owned(), effort.into());
        }
        stage.send(Command::Submit(Submit {
            message,
            mode: Mode::Ask,
            model: None,
        }));
        stage.done(turn + 1).await;
    }
    let efforts: Vec<_> = stage.script.asked().iter().map(|it| it.effort).collect();
    assert_eq!(
        efforts,
        [Some(Effort::High), Some(Effort::Low), None, Some(Effort::Low)]
    );
}

#[tokio::test]
async fn what_is_said_meanwhile_joins_the_answer_or_waits_for_its_own() {
    let form = json!({ "title": "t", "questions": [{ "id": "q", "prompt": "p", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }] });
    let script = once(vec![call("1", "ask", &form)]);
    let (_outside, _root, mut stage) = stage(&script);
    let message = |text: &str| Submit {
        message: Message::user(text),
        mode: Mode::Agent,
        model: None,
    };
    stage.say("go", Mode::Agent);
    stage
        .until("the question", |it| it.transcript.open_question().is_some())
        .await;
    stage.send(Command::Submit(message("a turn of its own")));
    stage.send(Command::Steer(message("turn left")));
    // Its answer lets the turn go on.
    stage.answer = Some("allow_once");
    stage.done(2).await;
    let asked = script.asked();
    let shown: Vec<String> = asked.iter().map(|it| format!("{:?}", it.messages)).collect();
    let has = |at: usize, text: &str| shown[at].contains(text);
    assert_eq!(asked.len(), 3);
    assert_eq!(
        (has(0, "turn left"), has(1, "turn left"), has(2, "turn left")),
        (false, true, true)
    );
    assert_eq!(
        (has(1, "a turn of its own"), has(2, "a turn of its own")),
        (false, true)
    );
    assert!(
        matches!(asked[1].messages.last(), Some(ModelMessage::User(_))),
        "behind the results"
    );
    stage.check("steering").await;
}

/// A message that is worked out first cannot join an answer. A form that waits would keep it back for ever.
#[tokio::test]
async fn a_form_does_not_wait_for_a_message_that_waits_for_it() {
    let form = json!({ "title": "t", "questions": [{ "id": "q", "prompt": "p", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "Bee" }] }] });
    for is_answered in [false, true] {
        let script = once(vec![call("1", "ask", &form)]);
        let (_outside, _root, mut stage) = stage(&script);
        stage.say("go", Mode::Agent);
        stage
            .until("the question", |it| it.transcript.open_question().is_some())
            .await;
        let place = stage.transcript.open_question().expect("it is open");
        let given = ClarificationResponse {
            document_id: stage.transcript.get(place).expect("the form").id.clone(),
            outcome: Dealt::Answered,
            answers: vec![QuestionAnswer {
                question_id: "q".to_owned(),
                selected_option_ids: vec!["b".to_owned()],
                free_text: None,
                hunks: Vec::new(),
            }],
            reason: None,
        };
        let mut message = Message::invoking("/way do it my way", "way", "do it my way");
        message.clarification_response = is_answered.then_some(given);
        stage.send(Command::Steer(Submit {
            message,
            mode: Mode::Agent,
            model: None,
        }));
        stage.done(2).await;
        let asked = script.asked();
        assert_eq!(asked.len(), 3);
        let told = |at: usize| format!("{:?}", asked[at].messages.last());
        assert_eq!(told(1).contains("Bee"), is_answered, "{}", told(1));
        assert!(!told(1).contains("my way") && told(2).contains("my way"), "{}", told(2));
        let said = stage.transcript.exchanges[1].message.as_ref().expect("the message");
        assert!(said.clarification_response.is_none(), "it was answered before");
        stage.check("a form and a message").await;
    }
}

/// Whoever stops an answer has back what was said to it, and no turn comes of it.
#[tokio::test]
async fn what_was_said_to_an_answer_that_is_stopped_opens_no_turn() {
    let (_outside, _root, mut stage) = stage(&Script::new(|_, _| ok()));
    let message = |message: Message| Submit {
        message,
        mode: Mode::Agent,
        model: None,
    };
    stage.send(Command::Run {
        submit: message(Message::user("! sleep 30")),
        line: "sleep 30".to_owned(),
        is_shown: true,
    });
    stage
        .until("the command", |it| it.has_open(&Kind::TerminalCommand))
        .await;
    stage.send(Command::Steer(message(Message::user("more words"))));
    stage.send(Command::Submit(message(Message::user("a turn of its own"))));
    stage.send(Command::Cancel);
    stage.done(2).await;
    // Said to an answer that is over, it is a message.
    stage.send(Command::Steer(message(Message::user("too late"))));
    stage.done(3).await;
    stage.say("the end", Mode::Agent);
    stage.done(4).await;
    let heard = stage.transcript.exchanges.iter().filter_map(|it| it.message.as_ref());
    let heard: Vec<&str> = heard.map(|it| it.content.as_str()).collect();
    assert_eq!(heard, ["! sleep 30", "a turn of its own", "too late", "the end"]);
}

#[tokio::test]
async fn what_is_said_while_room_is_made_is_answered_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let (go, wait) = tokio::sync::watch::channel(false);
    let script = Script::new(move |at, _| {
        if at != 1 {
            return ok();
        }
        let mut wait = wait.clone();
        let end = async move {
            wait.wait_for(|it| *it).await.expect("the test is there");
            Piece::End(EndReason::Stop)
        };
        let begin = futures::stream::iter([Piece::Text("In short.".to_owned())]);
        Box::pin(begin.chain(futures::stream::once(end)))
    });
    let mut stage = Stage::new(folder.path(), &script, Settings::default(), built_in().clone());
    let message = |text: &str| Submit {
        message: Message::user(text),
        mode: Mode::Agent,
        model: None,
    };
    stage.say("a long story", Mode::Agent);
    stage.done(1).await;
    stage.send(Command::Compact {
        submit: message("/compact"),
        scope: sheaf::protocol::CompactionScope::Summary { keep: String::new() },
    });
    stage
        .until("the summary's beginning", |it| {
            it.events.iter().any(|it| matches!(it, Event::ToolCallStart { .. }))
        })
        .await;
    stage.send(Command::Steer(message("and now the end")));
    go.send_replace(true);
    stage.done(3).await;
    let asked = script.asked();
    assert_eq!(asked.len(), 3);
    let last = format!("{:?}", asked[2].messages.last());
    assert!(last.contains("and now the end"), "{last}");
    let heard = stage.transcript.exchanges.iter().filter_map(|it| it.message.as_ref());
    let heard: Vec<&str> = heard.map(|it| it.content.as_str()).collect();
    assert_eq!(heard, ["a long story", "/compact", "and now the end"]);
}

#[tokio::test]
async fn limits_of_the_settings_ask_whether_to_go_on() {
    for (limit, is_calls) in [("requests", false), ("calls", true)] {
        let outside = tempfile::tempdir().expect("a folder");
        let root = workspace(outside.path());
        let mut settings = Settings::default();
        if is_calls {
            settings.agent.max_calls = 3;
        } else {
            settings.agent.max_requests = 3;
        }
        let script = Script::new(|at, _| {
            // A call that differs each time is no circle.
            let arguments = json!({ "pattern": format!("total{at}") });
            ending(vec![call(&at.to_string(), "grep", &arguments)], EndReason::ToolUse)
        });
        let mut stage = Stage::new(root.path(), &script, settings, built_in().clone());
        stage.say("go", Mode::Agent);
        stage
            .until("the question", |it| it.transcript.open_question().is_some())
            .await;
        assert_eq!(script.asked().len(), 3, "{limit}");
        let answer = |document, word: &str| ClarificationResponse {
            document_id: document,
            outcome: Dealt::Answered,
            answers: vec![QuestionAnswer {
                question_id: "go_on".to_owned(),
                selected_option_ids: vec![word.to_owned()],
                free_text: None,
                hunks: Vec::new(),
            }],
            reason: None,
        };
        let place = stage.transcript.open_question().expect("it is open");
        let document = stage.transcript.get(place).expect("it is there").id.clone();
        stage.send(Command::Answer {
            turn: Turn(1),
            response: answer(document.clone(), "yes"),
        });
        stage
            .until("the next question", |it| {
                it.transcript
                    .open_question()
                    .is_some_and(|at| it.transcript.get(at).is_some_and(|it| it.id != document))
            })
            .await;
        assert_eq!(script.asked().len(), 6, "{limit}: as many again");
        let place = stage.transcript.open_question().expect("it is open");
        let document = stage.transcript.get(place).expect("it is there").id.clone();
        stage.send(Command::Answer {
            turn: Turn(1),
            response: answer(document, "no"),
        });
        stage.done(1).await;
        assert_eq!(stage.finish(), FinishReason::MaxTurns, "{limit}");
        for request in script.asked() {
            check_paired(limit, &request.messages);
        }
    }
}

#[tokio::test]
async fn what_is_said_in_between_brings_what_it_points_at_and_its_mode() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.txt"), "one\ntwo\nthree\n").expect("written");
    let (go, wait) = tokio::sync::watch::channel(false);
    let script = Script::new(move |at, _| {
        if at > 0 {
            return ok();
        }
        let mut wait = wait.clone();
        let end = async move {
            wait.wait_for(|it| *it).await.expect("the test is there");
            Piece::End(EndReason::Stop)
        };
        let begin = futures::stream::iter([Piece::Text("I look.".to_owned())]);
        Box::pin(begin.chain(futures::stream::once(end)))
    });
    let mut stage = Stage::new(folder.path(), &script, Settings::default(), built_in().clone());
    stage.say("go", Mode::Agent);
    stage
        .until("a word", |it| {
            it.events.iter().any(|it| matches!(it, Event::ContentDelta { .. }))
        })
        .await;
    stage.send(Command::Steer(Submit {
        message: Message::user("mind @a.txt:2-2, and plan first"),
        mode: Mode::Plan,
        model: None,
    }));
    go.send_replace(true);
    // It is heard in this answer or, where that ended too soon, as a message of its own.
    stage
        .until("an answer to it", |it| {
            it.script.asked().len() == 2 && !it.transcript.is_running()
        })
        .await;
    let asked = script.asked();
    let last = format!("{:?}", asked[1].messages.last());
    assert!(last.contains("2|two") && !last.contains("1|one"), "{last}");
    assert!(last.contains("Plan mode is on") || last.contains("plan mode"), "{last}");
    assert!(
        last.contains("refused in plan mode") && last.contains("`write`"),
        "{last}"
    );
    assert_eq!(asked[0].tools, asked[1].tools, "the list is the same in all modes");
    assert_eq!(asked[0].system, asked[1].system);
    stage.check("said in between").await;
}

/// The texts of everything that a request tells the model.
fn told(request: &ModelRequest) -> String {
    format!("{:?}", request.messages)
}

#[tokio::test]
async fn what_the_user_runs_is_a_document_and_told_only_where_that_is_wanted() {
    let script = Script::new(|_, _| ok());
    let (_outside, _root, mut stage) = stage(&script);
    let run = |stage: &Stage, line: &str, is_shown: bool| {
        stage.send(Command::Run {
            submit: Submit {
                message: Message::user(format!("! {line}")),
                mode: Mode::Ask,
                model: None,
            },
            line: line.to_owned(),
            is_shown,
        });
    };
    run(&stage, "echo shown-$((40 + 2))", true);
    stage.done(1).await;
    // Nobody is asked, in any tier: typing it was the decision.
    let documents = stage.documents();
    assert_eq!(documents.len(), 1, "{documents:?}");
    let document = documents.last().expect("the command");
    assert_eq!(document.kind, Kind::TerminalCommand);
    assert_eq!(document.metadata["command"], "echo shown-$((40 + 2))");
    assert_eq!(document.metadata["exitCode"], 0, "{document:?}");
    assert!(
        document.metadata["output"].to_string().contains("shown-42"),
        "{document:?}"
    );
    assert_eq!(stage.finish(), FinishReason::Stop);
    run(&stage, "echo hidden-$((40 + 2))", false);
    stage.done(2).await;
    assert!(script.asked().is_empty(), "the model is not asked");
    stage.say("what did it print?", Mode::Agent);
    stage.done(3).await;
    let asked = script.asked();
    let told = told(asked.last().expect("it was asked"));
    assert!(told.contains("shown-42") && !told.contains("hidden"), "{told}");
    check_paired(
        "after commands of the user's",
        &asked.last().expect("it was asked").messages,
    );
}

/// The document of the command `line` that the user types, once it has ended.
async fn typed(stage: &mut Stage, turn: usize, line: &str) -> Document {
    stage.send(Command::Run {
        submit: Submit {
            message: Message::user(format!("! {line}")),
            mode: Mode::Agent,
            model: None,
        },
        line: line.to_owned(),
        is_shown: true,
    });
    stage.done(turn).await;
    Document::clone(stage.documents().last().expect("the command"))
}

#[tokio::test]
async fn what_the_user_typed_lets_git_commit_but_not_plant_a_hook_nor_do_what_a_rule_forbids() {
    let script = Script::new(|_, _| ok());
    let outside = tempfile::tempdir().expect("a folder");
    let root = workspace(outside.path());
    let git = |words: &[&str]| {
        let status = std::process::Command::new("git")
            .args(words)
            .current_dir(root.path())
            .status();
        assert!(status.expect("git runs").success(), "{words:?}");
    };
    git(&["init", "--quiet", "."]);
    git(&["config", "user.name", "a"]);
    git(&["config", "user.email", "a@b.c"]);
    let mut settings = Settings::default();
    settings.approvals.deny = vec![ConfiguredRule::new("Shell(git push)")];
    let mut stage = Stage::new(root.path(), &script, settings, built_in().clone());
    let commit = typed(&mut stage, 1, "git add a.txt && git commit --quiet -m typed").await;
    assert_eq!(commit.metadata["exitCode"], 0, "{commit:?}");
    git(&["rev-parse", "--verify", "--quiet", "HEAD"]);
    if commit.metadata["sandbox"] == "none" {
        eprintln!("skipped: hooks are not held here, because there is no sandbox");
    } else {
        typed(&mut stage, 2, "echo 'touch owned' > .git/hooks/pre-commit; true").await;
        assert!(!root.path().join(".git/hooks/pre-commit").exists());
    }
    let turn = if commit.metadata["sandbox"] == "none" { 2 } else { 3 };
    let pushed = typed(&mut stage, turn, "git push origin main").await;
    assert!(
        format!("{pushed:?}").contains("the rule Shell(git push) forbids it"),
        "{pushed:?}"
    );
}

#[tokio::test]
async fn a_question_is_answered_in_another_way_and_a_call_made_again_each_on_a_branch() {
    let options = json!([{ "id": "up", "label": "up" }, { "id": "down", "label": "down" }]);
    let questions = json!([{ "id": "q", "prompt": "Which way?", "options": options }]);
    let script = Script::new(move |at, _| match at {
        0 => ending(
            vec![call(
                "a",
                "ask",
                &json!({ "title": "Rounding", "questions": questions }),
            )],
            EndReason::ToolUse,
        ),
        1 => ending(
            vec![call("r", "read_file", &json!({ "target_file": "a.txt" }))],
            EndReason::ToolUse,
        ),
        _ => ok(),
    });
    let (_outside, _root, mut stage) = stage(&script);
    stage.answer = Some("allow_once");
    stage.say("round it", Mode::Agent);
    stage.done(1).await;
    stage.answer = None;
    let find = |stage: &Stage, kind: &Kind| {
        let documents = stage.documents();
        let found = documents.iter().find(|it| it.kind == *kind);
        found.map(|it| it.id.clone()).expect("it is there")
    };
    let (question, read) = (find(&stage, &Kind::Clarification), find(&stage, &Kind::ToolCall));
    let turn = stage.transcript.exchanges.last().expect("a turn").turn;

    let open = Branch {
        after: turn,
        upto: Some(question.clone()),
        is_open: true,
    };
    stage.send(Command::SwitchBranch(open));
    stage
        .until("an open question", |it| it.transcript.open_question().is_some())
        .await;
    let answer = QuestionAnswer {
        question_id: "q".to_owned(),
        selected_option_ids: vec!["down".to_owned()],
        free_text: None,
        hunks: Vec::new(),
    };
    let response = ClarificationResponse {
        document_id: question.clone(),
        outcome: Dealt::Answered,
        answers: vec![answer],
        reason: None,
    };
    stage.send(Command::Answer { turn, response });
    stage.done(2).await;
    let asked = script.asked();
    let heard = told(asked.last().expect("it was asked"));
    assert!(heard.contains("down") && !heard.contains("one\\ntwo"), "{heard}");
    check_paired("another answer", &asked.last().expect("it was asked").messages);

    let before = Branch {
        after: turn,
        upto: Some(question),
        is_open: false,
    };
    stage.send(Command::RepeatCall {
        submit: Submit {
            message: Message::user("/again 1.2"),
            mode: Mode::Agent,
            model: None,
        },
        turn,
        document: read.clone(),
        from: before.clone(),
    });
    stage.done(3).await;
    let documents = stage.documents();
    let again = documents.last().expect("the call");
    assert_eq!(
        (again.kind.clone(), &again.metadata["toolName"]),
        (Kind::ToolCall, &json!("read_file"))
    );
    assert_eq!(again.metadata["result"]["status"], "success", "{again:?}");
    assert_eq!(script.asked().len(), asked.len(), "the model is not asked");

    let made = again.id.clone();
    // What is no call is not made.
    stage.send(Command::RepeatCall {
        submit: Submit {
            message: Message::user("/again 1.1"),
            mode: Mode::Agent,
            model: None,
        },
        turn,
        document: "nothing".into(),
        from: before,
    });
    let is_said = |it: &Stage| {
        it.events
            .iter()
            .any(|it| matches!(it, Event::Notice(it) if it.code == "no-call"))
    };
    stage.until("a word on it", is_said).await;
    let shown = stage.documents();
    assert_eq!(
        shown.last().map(|it| &it.id),
        Some(&made),
        "and nothing leaves the screen"
    );
    stage.say("and?", Mode::Agent);
    stage.done(4).await;
    let asked = script.asked();
    let heard = told(asked.last().expect("it was asked"));
    assert!(heard.contains("two"), "the model is told of the call: {heard}");
    check_paired("a call of the user's", &asked.last().expect("it was asked").messages);
}

#[tokio::test]
async fn a_rejected_change_is_taken_back_where_it_still_stands() {
    let script = Script::new(|at, _| match at {
        0 => ending(
            vec![call("r", "read_file", &json!({ "target_file": "a.txt" }))],
            EndReason::ToolUse,
        ),
        1 => ending(
            vec![call(
                "e",
                "search_replace",
                &json!({ "file_path": "a.txt", "old_string": "two", "new_string": "2" }),
            )],
            EndReason::ToolUse,
        ),
        _ => ok(),
    });
    let (_outside, root, mut stage) = stage(&script);
    stage.answer = Some("allow_once");
    let file = root.path().join("a.txt");
    let before = fs::read_to_string(&file).expect("it is there");
    stage.say("change it", Mode::Agent);
    stage.done(1).await;
    assert_ne!(fs::read_to_string(&file).expect("it is there"), before);
    let documents = stage.documents();
    let edit = documents.iter().find(|it| it.kind == Kind::FileEdit).expect("an edit");
    let reject = Command::Update {
        turn: Turn(1),
        document: edit.id.clone(),
        metadata: json!({ "applied": "rejected" }).as_object().expect("an object").clone(),
    };
    // Lines that came above it meanwhile do not matter; what it wrote does.
    let changed = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, format!("above\n{changed}")).expect("it is written");
    stage.send(reject.clone());
    let is_rejected =
        |it: &Event| matches!(it, Event::DocumentUpdate { metadata, .. } if metadata["applied"] == "rejected");
    stage
        .until("the rejection", |it| it.events.iter().any(is_rejected))
        .await;
    assert_eq!(
        fs::read_to_string(&file).expect("it is there"),
        format!("above\n{before}")
    );
    stage.send(reject);
    let is_kept =
        |it: &Event| matches!(it, Event::Notice(it) if it.code == "not-taken-back" && it.message.contains("already"));
    stage.until("a word about it", |it| it.events.iter().any(is_kept)).await;
    assert_eq!(
        fs::read_to_string(&file).expect("it is there"),
        format!("above\n{before}")
    );
}
