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

/// For every tool: arguments that would do something, by the names of its schema and by those of other programs.
fn arguments(tool: &Tool, outside: &Path) -> Vec<Value> {
    let trace = outside.join("trace").display().to_string();
    let plan = json!({ "name": "p", "overview": "o", "plan": "# p", "todos": [{ "id": "a", "content": "b" }] });
    match tool.name.as_str() {
        "codebase_search" => vec![json!({ "query": "Where is the total?", "target_directories": ["src"] })],
        "grep" => vec![
            json!({ "pattern": "total" }),
            json!({ "pattern": "one", "path": "a.txt", "output_mode": "content" }),
        ],
        "read_file" => vec![
            json!({ "target_file": "a.txt" }),
            json!({ "path": "../../etc/hostname" }),
        ],
        "glob_file_search" => vec![json!({ "glob_pattern": "**/*" }), json!({ "pattern": "*.rs" })],
        "list_dir" => vec![json!({ "target_directory": "." }), json!({ "path": "src" })],
        "read_lints" => vec![json!({}), json!({ "paths": ["src/a.py"] }), json!({ "path": "src" })],
        "edit_file" => vec![
            json!({ "target_file": "a.txt", "instructions": "i", "code_edit": "one\nTWO\nthree\n" }),
            json!({ "target_file": "new.txt", "instructions": "i", "code_edit": "new\n" }),
        ],
        "search_replace" => vec![
            json!({ "file_path": "a.txt", "old_string": "two", "new_string": "2" }),
            json!({ "file_path": "new.txt", "old_string": "", "new_string": "new\n" }),
            json!({ "path": "a.txt", "old_str": "two", "new_str": "2", "replace_all": "true" }),
            json!({ "file_path": "a.txt", "edits": [{ "old_string": "one", "new_string": "1" }] }),
            json!({ "target_file": "a.txt", "instructions": "i", "code_edit": "one\nTWO\nthree\n" }),
        ],
        "write" => vec![
            json!({ "file_path": "a.txt", "contents": "gone" }),
            json!({ "path": "deep/new.txt", "content": "new" }),
            json!({ "file_path": trace, "contents": "outside" }),
        ],
        "delete_file" => vec![json!({ "target_file": "a.txt" }), json!({ "path": "empty.txt" })],
        "edit_notebook" => vec![
            json!({ "target_notebook": "a.ipynb", "cell_idx": 0, "is_new_cell": false, "cell_language": "python",
                    "old_string": "x = 1", "new_string": "x = 2" }),
            json!({ "notebook_path": "a.ipynb", "cell_idx": "1", "is_new_cell": "true", "cell_language": "python",
                    "old_string": "", "new_string": "y = 2" }),
        ],
        "apply_patch" => vec![
            json!({ "patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End Patch" }),
            json!({ "input": "*** Begin Patch\n*** Add File: new.txt\n+new\n*** Delete File: empty.txt\n*** End Patch" }),
        ],
        "run_terminal_cmd" => vec![
            json!({ "command": format!("touch '{trace}'"), "is_background": false }),
            json!({ "cmd": format!("echo x > new.txt; touch '{trace}'"), "run_in_background": true }),
            json!({ "command": "ls", "is_background": "false", "required_permissions": ["all"] }),
        ],
        "await_command" => vec![json!({ "command_id": "cmd_1", "id": "1", "timeout_ms": 1 })],
        "web_search" => vec![json!({ "search_term": "cart" })],
        "web_fetch" => vec![
            json!({ "url": "http://127.0.0.1:9/" }),
            json!({ "url": "file:///etc/hostname" }),
        ],
        "todo_write" => vec![json!({ "merge": false, "todos": [{ "id": "a", "content": "b", "status": "pending" }] })],
        "create_plan" => vec![plan],
        "ask" => vec![
            json!({ "title": "t", "questions": [{ "id": "q", "prompt": "p", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }] }),
        ],
        "switch_mode" => ["agent", "debug", "plan", "ask"]
            .map(|it| json!({ "target_mode_id": it }))
            .to_vec(),
        // A tool without a line of its own: something for each argument.
        _ => {
            let properties = tool.schema["properties"].as_object().cloned().unwrap_or_default();
            let value = |wanted: &Value| match wanted["type"].as_str() {
                Some("integer" | "number") => json!(1),
                Some("boolean") => json!(true),
                Some("array") => json!([trace]),
                Some("object") => json!({}),
                _ => json!(trace),
            };
            let values = properties.iter().map(|(name, wanted)| (name.clone(), value(wanted)));
            vec![Value::Object(values.collect())]
        }
    }
}

/// In every mode, every tool by every name, offered or switched off, by a user who says yes to whatever is asked of calls
/// and never to another mode.
#[tokio::test]
async fn in_plan_and_ask_mode_nothing_changes_and_nothing_runs() {
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
                let wrong = offered.iter().find(|name| {
                    let tool = built_in().get(name).expect("a tool");
                    !tool.modes.contains(&mode) || !is_offered
                });
                assert_eq!(wrong, None, "{mode}: it is offered");
                check_paired(mode.as_str(), &request.messages);
            }
        }
    }
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
