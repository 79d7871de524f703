//! A repository with skills, commands, hooks and modes that were written for Cursor and for Claude Code, in the real binary.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{bench::Bench, pty::Start, say};

/// The files of a repository that others have written, by their paths.
const REPOSITORY: &[(&str, &str)] = &[
    (".git/HEAD", "ref: refs/heads/main\n"),
    ("README.md", "# Shop\n"),
    (
        ".claude/skills/release/SKILL.md",
        "---\nname: release\ndescription: Cuts a release: tags and publishes\nargument-hint: [version]\n---\n\
         Release $0 as ${CLAUDE_SKILL_DIR}/notes.md says.\n",
    ),
    (".claude/skills/release/notes.md", "Tag first.\n"),
    (
        ".cursor/skills/secret/SKILL.md",
        "---\nname: secret\ndescription: Only by name\ndisable-model-invocation: true\n---\nQuietly.\n",
    ),
    (
        ".claude/commands/git/commit.md",
        "---\nallowed-tools: Bash(git:*)\ndescription: Writes a commit\n---\nStatus: !`echo from-the-shell`\nFor $ARGUMENTS in @README.md\n",
    ),
    (".cursor/commands/review.md", "Review the code.\n"),
    (
        ".cursor/hooks.json",
        r#"{"version":1,"hooks":{
            "beforeShellExecution":[{"command":".cursor/hooks/net.sh","matcher":"curl|push"}],
            "beforeReadFile":[{"command":".cursor/hooks/read.sh"}],
            "afterFileEdit":[{"command":"cat > edited.json"}]}}"#,
    ),
    (
        ".cursor/hooks/net.sh",
        "#!/bin/sh\ncat > shell.json\necho '{\"permission\":\"deny\",\"agent_message\":\"the network is off\"}'\n",
    ),
    (
        ".cursor/hooks/read.sh",
        "#!/bin/sh\ngrep -q Shop && exit 0\necho 'not this file' >&2\nexit 2\n",
    ),
    (
        ".claude/settings.json",
        r#"{"hooks":{
            "PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"\"$CLAUDE_PROJECT_DIR\"/.claude/rewrite.sh"}]}],
            "PostToolUse":[{"matcher":"Write","hooks":[{"type":"command","command":"echo '{\"decision\":\"block\",\"reason\":\"format it\"}'"}]}],
            "UserPromptSubmit":[{"hooks":[{"type":"command","command":"echo Today is the day."}]}],
            "SessionStart":[{"hooks":[{"type":"command","command":"echo Be brief."}]}]}}"#,
    ),
    (
        ".claude/rewrite.sh",
        "#!/bin/sh\ncase \"$(cat)\" in *'echo old'*) \
         echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\",\"updatedInput\":{\"command\":\"echo new\"}}}';; esac\n",
    ),
    (".sheaf/modes/look.md", "---\ntools: [reads]\n---\nOnly look.\n"),
];

fn bench() -> Bench {
    Bench::new(REPOSITORY)
}

/// Lets the model make these calls, one after the other. Returns all results, and what was said on standard error.
fn calls(bench: &Bench, arguments: &[&str], calls: &[(&str, Value)]) -> (Vec<String>, String) {
    let steps: Vec<&[(&str, Value)]> = calls.iter().map(std::slice::from_ref).collect();
    let (results, output) = bench.play(arguments, &steps);
    (results, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The text of a member of the request's messages.
fn said(request: &Value, role: &str) -> String {
    let messages = request["messages"].as_array().expect("messages");
    let texts = messages.iter().filter(|it| it["role"] == role);
    texts
        .map(|it| it["content"].as_str().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.filter_map(|it| it["function"]["name"].as_str()).collect()
}

/// Returns true, and says so, where no command can run.
fn is_without_sandbox(told: &str) -> bool {
    let is_missing = told.contains("there is no sandbox here");
    if is_missing {
        say("\nSKIPPED: there is no sandbox here, and without one no hook runs\n");
    }
    is_missing
}

#[test]
fn a_skill_is_listed_loaded_once_and_known_after_continue() {
    let bench = bench();
    let child = bench.start("release it", &["--trust"]);
    let first = bench.model.asked();
    let system = said(&first.request, "system");
    assert!(
        system.contains("- release (.claude/skills/release/SKILL.md): Cuts a release: tags and publishes"),
        "{system}"
    );
    assert!(
        !system.contains("Only by name") && !system.contains("Release $0"),
        "{system}"
    );
    assert!(tools(&first.request).contains(&"skill"));
    first.calls(&[("skill", json!({ "name": "release", "arguments": "1.2" }))]);
    let second = bench.model.asked();
    let folder = bench.folder.path().canonicalize().expect("it is there");
    let folder = folder.join("work/.claude/skills/release");
    let loaded = second.results();
    assert!(
        loaded[0].starts_with("<skill_content name=\"release\">\n"),
        "{loaded:?}"
    );
    assert!(
        loaded[0].contains(&format!("Release 1.2 as {}/notes.md says.", folder.display())),
        "{loaded:?}"
    );
    assert!(loaded[0].contains("- notes.md"), "{loaded:?}");
    second.calls(&[
        ("Skill", json!({ "skill": "release" })),
        ("skill", json!({ "name": "secret" })),
    ]);
    let third = bench.model.asked();
    let results = third.results();
    assert!(results[0].contains("is loaded already"), "{results:?}");
    assert!(results[1].contains("no skill is called `secret`"), "{results:?}");
    let before = third.request.clone();
    third.says("Done.");
    third.finish();
    child.wait_with_output().expect("it ends");
    // The catalogue stays as it was told; what is new is a reminder.
    bench.write(
        "work/.claude/skills/new/SKILL.md",
        "---\nname: new\ndescription: Brand new\n---\nx",
    );
    let child = bench.start("go on", &["--trust", "--continue"]);
    let again = bench.model.asked();
    assert_eq!(again.request["messages"][0], before["messages"][0]);
    assert_eq!(again.request["tools"], before["tools"]);
    assert!(said(&again.request, "user").contains("- new (.claude/skills/new/SKILL.md): Brand new"));
    again.calls(&[("skill", json!({ "name": "release" }))]);
    let last = bench.model.asked();
    assert!(last.results().last().is_some_and(|it| it.contains("is loaded already")));
    last.says("Done.");
    last.finish();
    child.wait_with_output().expect("it ends");
}

#[test]
fn the_skills_that_were_used_last_keep_their_descriptions() {
    let bench = bench();
    for nth in 0..20 {
        let about = format!("{} end-of-{nth:02}", "long ".repeat(190));
        bench.write(
            &format!("work/.sheaf/skills/s{nth:02}/SKILL.md"),
            &format!("---\nname: s{nth:02}\ndescription: {about}\n---\nx\n"),
        );
    }
    let system = |prompt: &str| {
        let child = bench.start(prompt, &["--trust", "--no-session"]);
        let asked = bench.model.asked();
        let system = said(&asked.request, "system");
        asked.says("Hello.");
        asked.finish();
        child.wait_with_output().expect("it ends");
        system
    };
    assert!(!system("/s17").contains("end-of-"));
    assert!(!system("/s03").contains("end-of-03"));
    let told = system("hello");
    let whole: Vec<usize> = (0..20)
        .filter(|nth| told.contains(&format!("end-of-{nth:02}")))
        .collect();
    assert_eq!(whole, [3, 17], "{told}");
}

#[test]
fn nothing_of_a_repository_acts_before_it_is_trusted() {
    let bench = bench();
    let child = bench.start("/git:commit x", &[]);
    let asked = bench.model.asked();
    let request = asked.request.to_string();
    for word in ["available_skills", "from-the-shell", "Be brief", "Today is the day"] {
        assert!(!request.contains(word), "{word}: {request}");
    }
    assert!(!tools(&asked.request).contains(&"skill"));
    asked.says("Hello.");
    asked.finish();
    child.wait_with_output().expect("it ends");
}

#[test]
fn commands_and_skills_are_filled_in_for_who_types_them() {
    let bench = bench();
    for (prompt, words) in [
        ("/git:commit the cart", &["For the cart in @README.md", "# Shop"][..]),
        ("/review all of it", &["Review the code.\n\nall of it"]),
        ("/secret", &["<skill_content name=\"secret\">", "Quietly."]),
        ("/no-such-command", &["/no-such-command"]),
    ] {
        let child = bench.start(prompt, &["--trust", "--no-session"]);
        let asked = bench.model.asked();
        let said = said(&asked.request, "user");
        for word in words {
            assert!(said.contains(word), "{prompt}: {word}: {said}");
        }
        assert!(
            said.contains("Be brief.") && said.contains("Today is the day."),
            "{said}"
        );
        asked.says("Hello.");
        asked.finish();
        child.wait_with_output().expect("it ends");
    }
}

#[test]
fn hooks_of_both_programs_guard_calls() {
    let bench = bench();
    let arguments = ["--trust", "--no-session"];
    let run = |line: &str| ("run_terminal_cmd", json!({ "command": line, "is_background": false }));
    let (results, told) = calls(
        &bench,
        &arguments,
        &[
            run("git push origin main"),
            run("echo old"),
            ("read_file", json!({ "target_file": "README.md" })),
            ("read_file", json!({ "target_file": ".cursor/hooks.json" })),
            ("write", json!({ "file_path": "new.txt", "contents": "hello\n" })),
        ],
    );
    if is_without_sandbox(&told) {
        return;
    }
    assert!(results[0].contains("the network is off"), "{results:?} {told}");
    assert!(results[1].contains("new") && !results[1].contains("old"), "{results:?}");
    assert!(results[2].contains("# Shop"), "{results:?}");
    assert!(results[3].contains("not this file"), "{results:?}");
    assert!(results[4].contains("format it"), "{results:?}");
    assert_eq!(bench.read("work/new.txt"), "hello\n");
    for line in [
        "note: hook .cursor/hooks.json beforeShellExecution (",
        " ms): denied: the network is off",
        "note: hook .claude/settings.json PreToolUse (",
        " ms): changed the input",
        "note: hook .claude/settings.json PostToolUse (",
        " ms): added context",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let shell: Value = serde_json::from_str(&bench.read("work/shell.json")).expect("JSON");
    assert_eq!(shell["command"], "git push origin main");
    assert_eq!(shell["hook_event_name"], "beforeShellExecution");
    let edited: Value = serde_json::from_str(&bench.read("work/edited.json")).expect("JSON");
    assert_eq!(edited["edits"], json!([{ "old_string": "", "new_string": "hello\n" }]));
}

#[test]
fn the_document_of_a_call_has_the_hooks_that_ran_for_it() {
    let bench = bench();
    let child = bench.start("go", &["--trust", "--no-session", "--output-format", "documents"]);
    let run = |line: &str| ("run_terminal_cmd", json!({ "command": line, "is_background": false }));
    bench.model.asked().calls(&[run("git push"), run("echo plain")]);
    let asked = bench.model.asked();
    asked.calls(&[("write", json!({ "file_path": "new.txt", "contents": "hello\n" }))]);
    let last = bench.model.asked();
    last.says("Done.");
    last.finish();
    let output = child.wait_with_output().expect("it ends");
    if is_without_sandbox(&String::from_utf8_lossy(&output.stderr)) {
        return;
    }
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let documents = printed["documents"].as_array().expect("documents");
    let hooks = |kind: &str, nth: usize| {
        let found = documents.iter().filter(|it| it["type"] == kind).nth(nth);
        found.unwrap_or_else(|| panic!("{kind}: {printed:#}"))["metadata"]["hooks"].clone()
    };
    let push = hooks("terminal_command", 0);
    let denied = push
        .as_array()
        .expect("hooks")
        .iter()
        .find(|it| it["effect"] == "denied");
    let denied = denied.unwrap_or_else(|| panic!("{push:#}"));
    assert_eq!(denied["hook"], ".cursor/hooks.json beforeShellExecution");
    assert_eq!(denied["command"], ".cursor/hooks/net.sh");
    assert_eq!(
        (&denied["exitCode"], &denied["message"]),
        (&json!(0), &json!("the network is off"))
    );
    assert!(denied["duration_ms"].is_u64());
    let plain = hooks("terminal_command", 1);
    let plain: Vec<_> = plain.as_array().expect("hooks").iter().collect();
    assert!(
        plain.len() == 1 && plain[0]["effect"].is_null() && plain[0]["exitCode"] == 0,
        "{plain:?}"
    );
    let edit = hooks("file_edit", 0);
    let names: Vec<_> = edit
        .as_array()
        .expect("hooks")
        .iter()
        .map(|it| it["hook"].clone())
        .collect();
    assert_eq!(
        names,
        [".cursor/hooks.json afterFileEdit", ".claude/settings.json PostToolUse"]
    );
}

#[test]
fn a_guard_judges_what_another_hook_has_made_of_a_call() {
    let bench = bench();
    let change = r#"grep -q before && echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"touch made.txt"}}}'; exit 0"#;
    let guard = "grep -q made.txt && { echo 'nothing is made' >&2; exit 2; }; exit 0";
    let hooks = [change, guard].map(|it| json!({ "type": "command", "command": it }));
    let file = json!({ "hooks": { "PreToolUse": [{ "hooks": hooks }] } });
    bench.write("home/.claude/settings.json", &file.to_string());
    let run = json!({ "command": "echo before", "is_background": false });
    let (results, told) = calls(&bench, &["--no-session", "--force"], &[("run_terminal_cmd", run)]);
    if is_without_sandbox(&told) {
        return;
    }
    assert!(results[0].contains("nothing is made"), "{results:?} {told}");
    assert!(!bench.folder.path().join("work/made.txt").exists(), "{told}");
}

#[test]
fn a_hooks_yes_lifts_no_rule_that_denies() {
    let bench = bench();
    bench.write(
        "home/.config/sheaf/config.toml",
        "[approvals]\ndeny = [\"Shell(rm)\"]\n",
    );
    bench.write(
        "home/.cursor/hooks.json",
        r#"{"hooks":{"preToolUse":[{"command":"echo '{\"permission\":\"allow\"}'"}]}}"#,
    );
    let (results, _) = calls(
        &bench,
        &["--no-session"],
        &[(
            "run_terminal_cmd",
            json!({ "command": "rm README.md", "is_background": false }),
        )],
    );
    assert!(
        results[0].contains("Shell(rm)") && results[0].contains("forbids"),
        "{results:?}"
    );
    assert_eq!(bench.read("work/README.md"), "# Shop\n");
}

#[test]
fn the_end_of_the_program_waits_for_the_hooks_of_the_end() {
    let bench = bench();
    bench.write(
        "work/.claude/settings.json",
        r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"echo Be kind."}]}],
            "SessionEnd":[{"hooks":[{"type":"command","command":"cat > ended.json"}]}]}}"#,
    );
    let child = bench.start("hi", &["--trust", "--no-session"]);
    let asked = bench.model.asked();
    asked.says("Hello.");
    asked.finish();
    let output = child.wait_with_output().expect("it ends");
    if is_without_sandbox(&String::from_utf8_lossy(&output.stderr)) {
        return;
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Hello.\n");
    let ended: Value = serde_json::from_str(&bench.read("work/ended.json")).expect("JSON");
    assert_eq!(ended["hook_event_name"], "SessionEnd");
}

#[test]
fn a_prompt_that_a_hook_blocks_is_not_sent() {
    let bench = bench();
    bench.write(
        "home/.cursor/hooks.json",
        r#"{"hooks":{"beforeSubmitPrompt":[{"command":"grep -q 'my-password' && echo '{\"continue\":false,\"user_message\":\"no passwords\"}'; exit 0"}]}}"#,
    );
    let output = bench
        .start("it is my-password", &["--no-session"])
        .wait_with_output()
        .expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if is_without_sandbox(&told) {
        return;
    }
    assert!(!output.status.success() && told.contains("no passwords"), "{told}");
    assert!(bench.model.is_idle());
}

#[test]
fn a_hook_that_ends_the_answer_before_a_call_keeps_it_from_running() {
    let bench = bench();
    let stop = r#"echo '{"continue":false,"stopReason":"enough"}'"#;
    let hooks = json!({ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": stop }] }] } });
    bench.write("home/.claude/settings.json", &hooks.to_string());
    let child = bench.start("go", &["--no-session", "--force"]);
    let write = json!({ "file_path": "made.txt", "contents": "made\n" });
    bench.model.asked().calls(&[("write", write)]);
    let output = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if is_without_sandbox(&told) {
        return;
    }
    assert!(!bench.folder.path().join("work/made.txt").exists(), "{told}");
    assert!(told.contains("a hook ended the answer: enough"), "{told}");
    assert!(bench.model.is_idle(), "{told}");
}

#[test]
fn a_hook_keeps_the_history_from_being_summed_up() {
    let model = crate::mock_model::Model::start();
    let hooks = r#"{"hooks":{"PreCompact":[{"hooks":[{"type":"command","command":"echo keep it >&2; exit 2"}]}]}}"#;
    let sheaf = Start::new(&[])
        .file(".claude/settings.json", hooks)
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
        .size(100, 30)
        .run();
    sheaf.wait_for("Ask anything");
    for (text, said) in [("one", "First."), ("two", "Second.")] {
        sheaf.send(&format!("{text}\r"));
        let asked = model.asked();
        asked.says(said);
        asked.finish();
        sheaf.wait_for(said);
        sheaf.wait_until("the answer is over", |seen| !seen.shows("agent ◐"));
    }
    sheaf.send("/compact\r");
    sheaf.wait_until("it was refused, or there is no sandbox", |seen| {
        seen.shows("keep it") || seen.shows("there is no sandbox")
    });
    assert!(model.is_idle(), "{}", sheaf.picture());
    // The conversation goes on.
    sheaf.send("three\r");
    let asked = model.asked();
    assert!(asked.request.to_string().contains("First."), "{}", asked.request);
    asked.finish();
}

#[test]
fn a_command_chooses_its_model_and_one_that_the_provider_lacks_is_said() {
    let cases: [(&str, &[&str], &[&str], Option<&str>); 9] = [
        // The settings know it: nobody is asked.
        (
            "quick-1",
            &["--set", "models.quick-1.window=100000"],
            &[],
            Some("quick-1"),
        ),
        // The provider lists it, under this name or as the newest of a family.
        ("quick-1", &[], &["gpt-5.2", "quick-1"], Some("quick-1")),
        (
            "haiku",
            &[],
            &["claude-haiku-4-5", "claude-haiku-3"],
            Some("claude-haiku-4-5"),
        ),
        (
            "sonnet",
            &[],
            &[
                "claude-3-5-sonnet-20241022",
                "claude-sonnet-4-5-20250929",
                "claude-sonnet-4-20250514",
            ],
            Some("claude-sonnet-4-5-20250929"),
        ),
        // Without its date, and with the word that stands for the newest.
        (
            "claude-sonnet-4-5",
            &[],
            &["claude-sonnet-4-5-20250929", "claude-3-5-sonnet-20241022"],
            Some("claude-sonnet-4-5-20250929"),
        ),
        (
            "claude-3-5-haiku-latest",
            &[],
            &["claude-3-5-haiku-20241022", "claude-3-haiku-20240307"],
            Some("claude-3-5-haiku-20241022"),
        ),
        // The catalogue has it, the provider does not.
        ("claude-haiku-4-5", &[], &["gpt-5.2"], None),
        // There is no list: the catalogue says that it may be there.
        ("gpt-5.2", &[], &[], Some("gpt-5.2")),
        ("quick-1", &[], &[], None),
    ];
    for (wanted, arguments, listed, expected) in cases {
        let bench = Bench {
            model: crate::mock_model::Model::start_with_models(listed),
            ..bench()
        };
        bench.write(
            "home/.claude/commands/quick.md",
            &format!("---\nmodel: {wanted}\n---\nBe quick.\n"),
        );
        let child = bench.start("/quick", &[&["--no-session"], arguments].concat());
        let asked = bench.model.asked();
        let model = asked.request["model"].as_str().unwrap_or_default().to_owned();
        asked.says("Done.");
        asked.finish();
        let output = child.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let warning = format!("/quick asks for the model {wanted}, which");
        assert_eq!(told.contains(&warning), expected.is_none(), "{wanted}: {told}");
        match expected {
            Some(expected) => assert_eq!(model, expected),
            None => assert_ne!(model, wanted),
        }
    }
}

/// A screen with the command `/quick`, which asks for the model `quick-1`.
fn quick(model: &crate::mock_model::Model) -> crate::pty::Sheaf {
    let sheaf = Start::new(&[])
        .file(".claude/commands/quick.md", "---\nmodel: quick-1\n---\nBe quick.\n")
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
        .size(100, 30)
        .run();
    sheaf.wait_for("Ask anything");
    sheaf
}

#[test]
fn a_list_that_cannot_be_had_is_said_and_asked_for_again() {
    let is_up = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&is_up);
    let model = crate::mock_model::Model::start_with_lists(move || {
        let is_up = own.load(Ordering::SeqCst);
        Some(if is_up {
            Ok(vec!["quick-1-2025-09-29"])
        } else {
            Err(503)
        })
    });
    let sheaf = quick(&model);
    // The model is used as it is named.
    for (text, wanted) in [("one", "quick-1"), ("two", "quick-1"), ("three", "quick-1-2025-09-29")] {
        is_up.store(text == "three", Ordering::SeqCst);
        sheaf.send(&format!("/quick {text}\r"));
        let asked = model.asked();
        assert_eq!(asked.request["model"], wanted, "{text}");
        if text == "one" {
            sheaf.wait_for("could not be asked");
        }
        asked.says(&format!("Said {text}."));
        asked.finish();
        sheaf.wait_for(&format!("Said {text}."));
        sheaf.wait_until("the answer is over", |seen| !seen.shows("agent ◐"));
    }
    assert!(sheaf.look(|seen| !seen.wrote(b"does not list")), "{}", sheaf.picture());
}

#[test]
fn a_message_is_shown_while_its_model_is_looked_for_and_can_be_stopped() {
    let is_up = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&is_up);
    let model =
        crate::mock_model::Model::start_with_lists(move || own.load(Ordering::SeqCst).then(|| Ok(vec!["quick-1"])));
    let sheaf = quick(&model);
    sheaf.send("/quick one\r");
    sheaf.wait_until("the message and what it waits for", |seen| {
        seen.shows("/quick one") && seen.shows("for its models")
    });
    sheaf.send("\x1b");
    sheaf.wait_until("it is stopped", |seen| {
        !seen.shows("for its models") && seen.shows("stopped")
    });
    assert!(
        model.is_idle() && sheaf.picture().contains("/quick one"),
        "{}",
        sheaf.picture()
    );
    // Ctrl+C does the same.
    sheaf.send("/quick two\r");
    sheaf.wait_until("the second", |seen| {
        seen.shows("/quick two") && seen.shows("for its models")
    });
    sheaf.send("\x03");
    sheaf.wait_gone("for its models");
    // What was stopped is told with the next message, whose list comes.
    is_up.store(true, Ordering::SeqCst);
    sheaf.send("/quick three\r");
    let asked = model.asked();
    assert_eq!(asked.request["model"], "quick-1");
    let said = said(&asked.request, "user");
    assert_eq!(said.matches("Be quick.").count(), 3, "{said}");
    asked.says("Done.");
    asked.finish();
    sheaf.wait_for("Done.");
}

#[test]
fn a_message_that_a_hook_keeps_back_is_told_to_no_model_although_it_was_shown() {
    let model = crate::mock_model::Model::start_with_models(&["quick-1"]);
    let hook = r#"{"hooks":{"beforeSubmitPrompt":[{"command":"grep -q 'my-password' && echo '{\"continue\":false,\"user_message\":\"no passwords\"}'; exit 0"}]}}"#;
    let start = |arguments: &[&str]| {
        Start::new(arguments)
            .file(".claude/commands/quick.md", "---\nmodel: quick-1\n---\nBe quick.\n")
            .file(".cursor/hooks.json", hook)
            .with("OPENAI_BASE_URL", &model.url)
            .with("OPENAI_API_KEY", "sk-test")
            .with("OPENAI_MODEL", "scripted")
            .size(100, 30)
    };
    let sheaf = start(&[]).run();
    sheaf.wait_for("Ask anything");
    sheaf.send("/quick it is my-password\r");
    sheaf.wait_until("it was refused, or there is no sandbox", |seen| {
        seen.shows("no passwords") || seen.shows("there is no sandbox")
    });
    assert!(model.is_idle(), "{}", sheaf.picture());
    sheaf.send("hello\r");
    let asked = model.asked();
    assert!(!asked.request.to_string().contains("my-password"), "{}", asked.request);
    asked.says("Hello you.");
    asked.finish();
    sheaf.wait_for("Hello you.");
    sheaf.send("/quit\r");
    sheaf.exit();
    // Neither is it when the conversation is read again.
    let again = start(&["--continue"]).after(&sheaf).run();
    again.wait_for("Hello you.");
    again.send("and again\r");
    let asked = model.asked();
    assert!(asked.request.to_string().contains("Hello you."), "{}", asked.request);
    assert!(!asked.request.to_string().contains("my-password"), "{}", asked.request);
    asked.finish();
}

#[test]
fn a_mode_of_a_file_is_chosen_without_a_screen() {
    let bench = bench();
    bench.write(
        "home/.config/sheaf/modes/calm.md",
        "---\ntools: [reads]\n---\nLook only, and be calm.",
    );
    let child = bench.start("hello", &["--no-session", "--agent", "calm"]);
    let asked = bench.model.asked();
    let request = asked.request.clone();
    asked.says("Done.");
    asked.finish();
    assert!(child.wait_with_output().expect("it ends").status.success());
    let said = said(&request, "user");
    assert!(said.contains("Look only, and be calm."), "{said}");
    // One that is not there is not sent with more rights than it would have.
    let child = bench.start("hello", &["--no-session", "--agent", "clam"]);
    let output = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && told.contains("no mode `clam`") && told.contains("calm"),
        "{told}"
    );
}

#[test]
fn the_first_message_of_a_screen_is_sent_in_the_mode_that_was_chosen() {
    let model = crate::mock_model::Model::start();
    let sheaf = Start::new(&["--agent", "calm", "hello"])
        .file(
            ".config/sheaf/modes/calm.md",
            "---\ntools: [reads]\n---\nLook only, and be calm.",
        )
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
        .size(100, 30)
        .run();
    let asked = model.asked();
    let said = said(&asked.request, "user");
    assert!(said.contains("Look only, and be calm."), "{said}");
    asked.says("Done.");
    asked.finish();
    sheaf.wait_for("Done.");
    sheaf.wait_for("── calm");
}

#[test]
fn what_a_mode_of_a_file_keeps_from_the_model_it_does_not_keep_from_the_user() {
    let model = crate::mock_model::Model::start();
    let sheaf = Start::new(&[])
        .file(".config/sheaf/modes/calm.md", "---\ntools: [reads]\n---\nLook only.")
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
        .size(100, 30)
        .run();
    sheaf.wait_for("Ask anything");
    // The file is read after the first key, which takes a moment on a busy machine.
    for _ in 0..500 {
        for mode in ["── agent, asks first", "── plan", "── ask ─", "── debug"] {
            sheaf.send("\x1b[Z");
            sheaf.wait_for(mode);
        }
        sheaf.send("\x1b[Z");
        sheaf.wait_until("the next mode", |seen| {
            seen.shows("── calm") || seen.shows("── agent ─")
        });
        if sheaf.look(|seen| seen.shows("── calm")) {
            break;
        }
    }
    sheaf.send("!echo from-$((40+2))\r");
    sheaf.wait_for("from-42");
    sheaf.wait_for("── calm");
    assert!(model.is_idle(), "{}", sheaf.picture());
}

#[test]
fn a_file_of_hooks_that_is_written_wrongly_is_said_at_once() {
    let bench = bench();
    bench.write(
        "home/.cursor/hooks.json",
        r#"{"hooks":{"beforeShellExecution":[{"command":"x"},]}}"#,
    );
    let child = bench.start("hi", &["--no-session"]);
    let asked = bench.model.asked();
    asked.says("Hello.");
    asked.finish();
    let output = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("hooks in ~/.cursor/hooks.json: is not JSON"), "{told}");
}

#[test]
fn hooks_of_the_user_start_although_the_home_is_below_tmp() {
    let bench = Bench {
        folder: tempfile::tempdir_in("/tmp").expect("a folder"),
        model: crate::mock_model::Model::start(),
    };
    bench.write("work/README.md", "# Shop\n");
    bench.write("home/.claude/check.sh", "#!/bin/sh\necho 'never here' >&2\nexit 2\n");
    bench.write("home/.cursor/check.sh", "#!/bin/sh\necho 'nor here' >&2\nexit 2\n");
    bench.write(
        "home/.claude/settings.json",
        r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"~/.claude/check.sh"}]}]}}"#,
    );
    bench.write(
        "home/.cursor/hooks.json",
        r#"{"hooks":{"beforeReadFile":[{"command":"./check.sh"}]}}"#,
    );
    let (results, told) = calls(
        &bench,
        &["--no-session"],
        &[
            (
                "run_terminal_cmd",
                json!({ "command": "echo x", "is_background": false }),
            ),
            ("read_file", json!({ "target_file": "README.md" })),
        ],
    );
    if is_without_sandbox(&told) {
        return;
    }
    assert!(results[0].contains("never here"), "{results:?} {told}");
    assert!(results[1].contains("nor here"), "{results:?} {told}");
}

#[test]
fn all_hooks_of_an_occasion_share_one_sandbox() {
    let bench = bench();
    let note = |at: usize| json!({ "command": format!("readlink /proc/self/ns/pid > {at}.seen; sleep 0.01") });
    let hooks: Vec<Value> = (0..50).map(note).collect();
    let file = json!({ "hooks": { "preToolUse": hooks } });
    bench.write("work/.cursor/hooks.json", &file.to_string());
    let (_, told) = calls(
        &bench,
        &["--trust", "--no-session"],
        &[("list_dir", json!({ "target_directory": "." }))],
    );
    if is_without_sandbox(&told) {
        return;
    }
    let seen: BTreeSet<String> = (0..50).map(|at| bench.read(&format!("work/{at}.seen"))).collect();
    assert_eq!(seen.len(), 1, "{seen:?} {told}");
}

#[test]
fn a_project_cannot_end_the_hooks_of_the_user() {
    let bench = bench();
    bench.write(
        "work/.cursor/hooks.json",
        r#"{"hooks":{"preToolUse":[{"command":"while kill -9 -1; do :; done; touch ran"}]}}"#,
    );
    bench.write(
        "home/.cursor/hooks.json",
        r#"{"hooks":{"preToolUse":[{"command":"sleep 0.5; echo 'the guard lives' >&2; exit 2"}]}}"#,
    );
    let (results, told) = calls(
        &bench,
        &["--trust", "--no-session"],
        &[("list_dir", json!({ "target_directory": "." }))],
    );
    if is_without_sandbox(&told) {
        return;
    }
    assert!(results[0].contains("the guard lives"), "{results:?} {told}");
}

#[test]
fn files_that_a_hook_changed_are_undone_with_the_turn() {
    let bench = bench();
    bench.write(
        "work/.cursor/hooks.json",
        r#"{"hooks":{
            "afterFileEdit":[{"command":"sed -i 's/hello/HELLO/' new.txt; echo formatted > format.log"}],
            "preToolUse":[{"matcher":"Shell","command":"echo before > README.md"}]}}"#,
    );
    let (results, told) = calls(
        &bench,
        &["--trust"],
        &[
            ("write", json!({ "file_path": "new.txt", "contents": "hello\n" })),
            (
                "run_terminal_cmd",
                json!({ "command": "cat README.md", "is_background": false }),
            ),
        ],
    );
    if is_without_sandbox(&told) {
        return;
    }
    assert!(results[1].contains("before"), "{results:?}");
    assert_eq!(bench.read("work/new.txt"), "HELLO\n");
    assert!(
        told.contains("hooks of edit_after changed format.log, new.txt"),
        "{told}"
    );
    assert!(told.contains("hooks of tool_before changed README.md"), "{told}");
    let (said, code) = bench.run(&["undo"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(bench.read("work/README.md"), "# Shop\n");
    let left = ["new.txt", "format.log"].map(|it| bench.folder.path().join("work").join(it).exists());
    assert_eq!(left, [false, false], "{said}");
}

#[test]
fn whatever_a_hook_in_the_sandbox_does_there_is_an_answer() {
    let bench = bench();
    let cases = [
        ("echo oops >&2; exit 1", "exit code 1: oops"),
        ("./no-such-program", "was not found (exit code 127)"),
        ("kill -9 $$", "ended by signal 9"),
        ("trap '' TERM; sleep 60", "took longer than 1 s"),
        ("setsid sleep 60 & exit 1", "exit code 1"),
        ("exec 1>&- 2>&-; exit 1", "exit code 1"),
        ("yes", "printed more than 1048576 bytes"),
        ("echo '{broken'", "its output is not JSON"),
        ("cat > /dev/null; echo '{}'; exit 3", "exit code 3"),
    ];
    let hooks: Vec<Value> = cases
        .iter()
        .map(|(command, _)| json!({ "hooks": [{ "type": "command", "command": command, "timeout": 1 }] }))
        .collect();
    let file = json!({ "hooks": { "UserPromptSubmit": hooks } });
    bench.write("home/.claude/settings.json", &file.to_string());
    let child = bench.start("hi", &["--no-session"]);
    let asked = bench.model.asked();
    asked.says("Hello.");
    asked.finish();
    let output = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if is_without_sandbox(&told) {
        return;
    }
    for (command, line) in cases {
        assert!(told.contains(line), "{command}: {told}");
    }
    assert_eq!(told.matches("UserPromptSubmit").count(), cases.len(), "{told}");
}

#[test]
fn a_hook_that_ends_its_sandbox_is_broken_and_closed_where_it_should_be() {
    let bench = bench();
    bench.write(
        "home/.cursor/hooks.json",
        r#"{"hooks":{"beforeSubmitPrompt":[{"command":"while kill -9 $PPID -1; do :; done; sleep 60","failClosed":true}]}}"#,
    );
    let output = bench
        .start("hi", &["--no-session"])
        .wait_with_output()
        .expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if is_without_sandbox(&told) {
        return;
    }
    assert!(told.contains("ended by signal 9; it counts as a no"), "{told}");
    assert!(!output.status.success() && bench.model.is_idle());
}
