//! What a mode permits is all that happens.

use super::*;

/// Every file and folder with what it holds and may do.
fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let kind = fs::symlink_metadata(&path).expect("it is there");
            let bytes = if kind.is_file() {
                fs::read(&path).expect("a file")
            } else {
                Vec::new()
            };
            if kind.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (kind.permissions().mode(), bytes));
        }
    }
    found
}

/// Arguments that would do something: the tool's own examples.
///
/// # Panics
///
/// If a tool has none: then nothing would be proved about it.
fn arguments(tool: &Tool, outside: &Path) -> Vec<Value> {
    assert!(!tool.examples.is_empty(), "{} has no examples", tool.name);
    let outside = outside.display().to_string();
    let read = |it: &&str| serde_json::from_str(&it.replace("{outside}", &outside)).expect("an example is JSON");
    tool.examples.iter().map(read).collect()
}

/// In every mode, every tool by every name, offered or switched off, by a user who says yes to whatever is asked of calls
/// and never to another mode.
#[tokio::test]
async fn in_plan_and_ask_mode_nothing_changes_and_nothing_runs() {
    let mut lists = std::collections::BTreeSet::new();
    for mode in Mode::ALL {
        for is_offered in [true, false] {
            let outside = tempfile::tempdir().expect("a folder");
            let root = workspace(outside.path());
            let before = tree(root.path());
            let mut settings = Settings::default();
            settings.agent.profile = "full".to_owned();
            settings.agent.edit_style = "both".to_owned();
            settings.agent.max_calls = 10_000;
            settings.lint.insert(
                "python".to_owned(),
                vec![root.path().join("linter.sh").display().to_string()],
            );
            for tool in built_in().iter() {
                settings.tools.entry(tool.name.clone()).or_default().enabled = is_offered;
            }
            // A call of every name with everything that would do something, each twice: after a read it is no blind edit.
            let mut batches: Vec<(&str, &Tool, Vec<Piece>)> = Vec::new();
            for tool in built_in().iter() {
                for name in std::iter::once(&tool.name).chain(&tool.aliases) {
                    let mut pieces = Vec::new();
                    let read = call(&format!("r-{name}"), "read_file", &json!({ "target_file": "a.txt" }));
                    pieces.push(read);
                    for (at, arguments) in arguments(tool, outside.path()).iter().enumerate() {
                        pieces.push(call(&format!("{name}-{at}"), name, arguments));
                    }
                    let wrapped = json!({ "tool_uses": [{ "recipient_name": format!("functions.{name}"), "parameters": arguments(tool, outside.path())[0] }] });
                    pieces.push(call(&format!("w-{name}"), "multi_tool_use.parallel", &wrapped));
                    batches.push((name, tool, pieces));
                }
            }
            let names: Vec<(&str, &Tool)> = batches.iter().map(|(name, tool, _)| (*name, *tool)).collect();
            let mut left = batches.into_iter().map(|(_, _, pieces)| pieces);
            let script = Script::new(move |_, request| match request.messages.last() {
                Some(ModelMessage::Results(_)) => ok(),
                _ => left.next().map_or_else(ok, |pieces| ending(pieces, EndReason::ToolUse)),
            });
            let mut stage = Stage::new(root.path(), &script, settings, built_in().clone());
            stage.answer = Some("allow_once");
            for (turn, (name, tool)) in names.iter().enumerate() {
                stage.say(name, mode);
                stage.done(turn + 1).await;
                let is_changing = !matches!(mode, Mode::Agent | Mode::Debug) || !is_offered;
                if is_changing {
                    assert!(
                        before == tree(root.path()),
                        "{name} ({}) changed something in {mode} mode",
                        tool.name
                    );
                    assert_eq!(
                        fs::read_dir(outside.path()).expect("a folder").count(),
                        0,
                        "{name} ran in {mode} mode"
                    );
                }
            }
            if !is_offered {
                assert_eq!(
                    stage.answered,
                    Vec::<String>::new(),
                    "{mode}: what is switched off is not asked about"
                );
            }
            // The control: where it is permitted and somebody says yes, the very same calls do change things.
            if matches!(mode, Mode::Agent | Mode::Debug) && is_offered {
                assert!(
                    before != tree(root.path()),
                    "{mode}: nothing that was called did anything"
                );
                assert!(outside.path().join("trace").exists(), "{mode}: no command ran");
                assert!(!stage.answered.is_empty(), "{mode}: nothing was asked");
            }
            for request in stage.script.asked() {
                let offered: Vec<&str> = request.tools.iter().map(|it| it.name.as_str()).collect();
                assert!(is_offered || offered.is_empty(), "{mode}: {offered:?} is offered");
                lists.insert(offered.join(" "));
                check_paired(mode.as_str(), &request.messages);
            }
        }
    }
    assert_eq!(lists.len(), 2, "all tools in all modes, or none: {lists:?}");
}

/// Whoever asks for another mode gets it by a yes and by nothing else.
#[tokio::test]
async fn another_mode_needs_a_yes() {
    for (answer, changes) in [
        ("allow_once", true),
        ("reject_once", false),
        ("", false),
        ("something else", false),
    ] {
        let outside = tempfile::tempdir().expect("a folder");
        let root = workspace(outside.path());
        let script = Script::new(|at, _| match at {
            0 => ending(
                vec![
                    call(
                        "1",
                        "switch_mode",
                        &json!({ "target_mode_id": "agent", "explanation": "to write" }),
                    ),
                    // In the same message: judged before anybody could say yes.
                    call("2", "write", &json!({ "file_path": "early.txt", "contents": "x" })),
                ],
                EndReason::ToolUse,
            ),
            1 => ending(
                vec![call("3", "Write", &json!({ "file_path": "late.txt", "contents": "x" }))],
                EndReason::ToolUse,
            ),
            _ => ok(),
        });
        let mut stage = Stage::new(root.path(), &script, Settings::default(), built_in().clone());
        stage.say("go", Mode::Plan);
        stage
            .until("the question", |it| it.transcript.open_question().is_some())
            .await;
        let place = stage.transcript.open_question().expect("it is open");
        let document = stage.transcript.get(place).expect("it is there").id.clone();
        let response = ClarificationResponse {
            document_id: document,
            outcome: if answer.is_empty() {
                Dealt::Skipped
            } else {
                Dealt::Answered
            },
            answers: vec![QuestionAnswer {
                question_id: "approval".to_owned(),
                selected_option_ids: vec![answer.to_owned()],
                free_text: None,
                hunks: Vec::new(),
            }],
            reason: None,
        };
        stage.send(Command::Answer {
            turn: Turn(1),
            response,
        });
        stage.done(1).await;
        assert!(
            !root.path().join("early.txt").exists(),
            "{answer:?}: it was written before the yes"
        );
        assert_eq!(root.path().join("late.txt").exists(), changes, "{answer:?}");
        stage.check(answer).await;
    }
}
