//! What checkers find goes with the next message, without anybody having asked for it.

use std::collections::BTreeSet;

use sheaf::{
    config::LanguageServer,
    sandbox::{Commands, Tier},
};

use super::*;

/// Names the sandbox's helper for a process that runs one test.
const HELPER: &str = "SHEAF_TEST_HELPER";

/// Returns true in a process that runs this test only, and commands in the sandbox: the helper is chosen for a whole process.
/// Elsewhere it runs that process, and fails as it does.
fn in_own_process(test: &str) -> bool {
    if let Some(helper) = std::env::var_os(HELPER) {
        sheaf::sandbox::use_helper(helper.into());
        if Commands::tier() == Tier::None {
            crate::skipped("there is no sandbox here, and without one no checker starts");
            return false;
        }
        return true;
    }
    let output = std::process::Command::new(std::env::current_exe().expect("it runs"))
        .args(["--exact", &format!("agent::checks::{test}"), "--nocapture"])
        .env(HELPER, env!("CARGO_BIN_EXE_sheaf"))
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let said = format!("{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    if let Some((_, why)) = said.split_once("SKIPPED: ") {
        crate::skipped(why.lines().next().unwrap_or_default());
    }
    false
}

/// A checker of the user's, which finds something in `notes.md`.
fn settings(trusted: &[&Path]) -> Settings {
    let words = ["sh", "-c", "echo 'notes.md:2: warning: too short'"].map(str::to_owned);
    Settings {
        trusted: trusted.iter().map(|it| it.to_string_lossy().into_owned()).collect(),
        lint: BTreeMap::from([("markdown".to_owned(), words.to_vec())]),
        ..Settings::default()
    }
}

/// The first answer writes `notes.md`, the others say something.
fn writer() -> Arc<Script> {
    Script::new(|at, _| match at {
        0 => ending(
            vec![call(
                "w",
                "write",
                &json!({ "file_path": "notes.md", "contents": "one\ntwo\n" }),
            )],
            EndReason::ToolUse,
        ),
        _ => ok(),
    })
}

/// What the model was told with each message of the user's.
fn messages(script: &Script) -> Vec<String> {
    let last = script.asked().pop().map(|it| it.messages).unwrap_or_default();
    let said = last.iter().filter(|it| matches!(it, ModelMessage::User(_)));
    said.map(|it| format!("{it:?}").replace("\\n", "\n")).collect()
}

#[tokio::test]
async fn what_they_find_goes_with_the_next_message() {
    if !in_own_process("what_they_find_goes_with_the_next_message") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("it is there");
    let script = writer();
    let mut stage = Stage::new(&root, &script, settings(&[&root]), built_in().clone());
    stage.answer = Some("allow_once");
    stage.say("write it", Mode::Agent);
    stage.done(1).await;
    let found = "<linter_errors>\nnotes.md:\n  2:1 warning too short\n</linter_errors>";
    let asking = async {
        for turn in 2.. {
            stage.say("go on", Mode::Agent);
            stage.done(turn).await;
            if messages(&script).iter().any(|it| it.contains(found)) {
                break;
            }
        }
    };
    let asked = tokio::time::timeout(PATIENCE, asking).await;
    asked.unwrap_or_else(|_| panic!("it is never told: {:#?}", messages(&script)));
    // Where they were when nobody had changed the file: now nobody knows.
    fs::write(root.join("notes.md"), "another\n").expect("a file");
    let turns = stage.ended();
    stage.say("and now", Mode::Agent);
    stage.done(turns + 1).await;
    let last = messages(&script).pop().expect("it was said");
    assert!(last.contains("and now") && !last.contains("linter_errors"), "{last}");
    stage.check("checkers").await;
}

#[tokio::test]
async fn nothing_is_checked_where_the_workspace_may_not_act_or_the_tool_is_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("it is there");
    let mut off = settings(&[&root]);
    off.tools.entry("read_lints".to_owned()).or_default().enabled = false;
    let mut asks = settings(&[&root]);
    asks.tools.entry("read_lints".to_owned()).or_default().require_approval = true;
    for (name, settings) in [("not trusted", settings(&[])), ("off", off), ("asks", asks)] {
        let script = writer();
        let mut stage = Stage::new(&root, &script, settings, built_in().clone());
        stage.answer = Some("allow_once");
        for turn in 1..6 {
            stage.say("write it", Mode::Agent);
            stage.done(turn).await;
        }
        let told: BTreeSet<_> = messages(&script).into_iter().collect();
        assert!(
            !told.iter().any(|it| it.contains("<linter_errors>")),
            "{name}: {told:#?}"
        );
        fs::remove_file(root.join("notes.md")).expect("it was written");
    }
}

/// A checker of the user's, which complains about what is to be done.
fn particular(root: &Path, wait: Duration, words: &str) -> Settings {
    let mut settings = settings(&[root]);
    settings
        .lint
        .insert("markdown".to_owned(), ["sh", "-c", words].map(str::to_owned).to_vec());
    settings.agent.lint_wait = wait;
    settings
}

const COMPLAINS: &str = "awk '/do/ {print \"notes.md:\" NR \":1: warning: \" $0}' notes.md";

/// Each answer writes one more thing to do into `notes.md`, four times; after a while the same once more.
fn planner() -> Arc<Script> {
    Script::new(|at, _| match at {
        0..=3 | 5 => {
            let lines: String = (0..=at).map(|it| format!("do {it}\n")).collect();
            let arguments = json!({ "file_path": "notes.md", "contents": lines });
            ending(vec![call("w", "write", &arguments)], EndReason::ToolUse)
        }
        _ => ok(),
    })
}

/// All results that the model was told.
fn told(script: &Script) -> Vec<String> {
    let last = script.asked().pop().map(|it| it.messages).unwrap_or_default();
    let results = last.into_iter().filter_map(|it| match it {
        ModelMessage::Results(results) => Some(results),
        ModelMessage::User(_) | ModelMessage::Assistant(_) => None,
    });
    results.flatten().map(|it| it.text).collect()
}

#[tokio::test]
async fn the_result_of_a_change_says_what_is_new_and_no_more_than_three_times_a_file() {
    if !in_own_process("the_result_of_a_change_says_what_is_new_and_no_more_than_three_times_a_file") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("it is there");
    let script = planner();
    let settings = particular(&root, PATIENCE, COMPLAINS);
    let mut stage = Stage::new(&root, &script, settings, built_in().clone());
    stage.answer = Some("allow_once");
    stage.say("write it", Mode::Agent);
    stage.done(1).await;
    let lints = |text: &String| text.split_once("\n\n").map(|it| it.1.to_owned()).unwrap_or_default();
    let head = "New lint errors in `notes.md`:";
    // Who changes it again and leaves them there hears of them again.
    let still = "Still there from an earlier change, in `notes.md`:";
    let left = ["1:1 warning: do 0 (markdown)", "2:1 warning: do 1 (markdown)"];
    let third = "This was told for the third time: if it is not mended by the next change, leave it and say so.";
    assert_eq!(
        told(&script).iter().map(lints).collect::<Vec<_>>(),
        [
            format!("{head}\n1:1 warning: do 0 (markdown)"),
            format!("{head}\n2:1 warning: do 1 (markdown)\n{still}\n{}", left[0]),
            format!(
                "{head}\n3:1 warning: do 2 (markdown)\n{still}\n{}\n{}\n{third}",
                left[0], left[1]
            ),
            String::new(),
        ]
    );
    // The user's next word begins anew.
    stage.say("and more", Mode::Agent);
    stage.done(2).await;
    let last = told(&script).pop().expect("a result");
    // Whether the checkers have looked in between is their own affair.
    assert!(lints(&last).contains("\n6:1 warning: do 5 (markdown)"), "{last}");
    stage.check("checkers").await;
}

#[tokio::test]
async fn a_change_does_not_wait_for_a_checker_that_takes_long_or_may_not_run() {
    if !in_own_process("a_change_does_not_wait_for_a_checker_that_takes_long_or_may_not_run") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("it is there");
    let for_ever = "until [ -e never ]; do sleep 1; done; echo notes.md:1: warning: late";
    let mut untrusted = particular(&root, PATIENCE, COMPLAINS);
    untrusted.trusted.clear();
    let cases = [
        ("slow", particular(&root, Duration::from_millis(20), for_ever)),
        ("not wanted", particular(&root, Duration::ZERO, COMPLAINS)),
        ("not trusted", untrusted),
    ];
    for (name, settings) in cases {
        let script = planner();
        let mut stage = Stage::new(&root, &script, settings, built_in().clone());
        stage.answer = Some("allow_once");
        stage.say("write it", Mode::Agent);
        stage.done(1).await;
        let told = told(&script);
        assert!(
            told.len() == 4 && told.iter().all(|it| !it.contains("lint")),
            "{name}: {told:#?}"
        );
        stage.check(name).await;
        fs::remove_file(root.join("notes.md")).expect("it was written");
    }
}

/// A language server that finds the word `broken` in files of its own language.
fn fake() -> LanguageServer {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lsp/server.sh");
    LanguageServer {
        command: Some(server.display().to_string()),
        args: vec!["good".to_owned()],
        extensions: vec![".fake".to_owned()],
        ..LanguageServer::default()
    }
}

#[tokio::test]
async fn what_language_servers_say_goes_with_the_next_message_too() {
    if !in_own_process("what_language_servers_say_goes_with_the_next_message_too") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("it is there");
    let script = Script::new(|at, _| match at {
        0 => {
            let arguments = json!({ "file_path": "a.fake", "contents": "broken\n" });
            ending(vec![call("w", "write", &arguments)], EndReason::ToolUse)
        }
        _ => ok(),
    });
    let mut settings = particular(&root, PATIENCE, COMPLAINS);
    settings.lsp.insert("fake".to_owned(), fake());
    let mut stage = Stage::new(&root, &script, settings, built_in().clone());
    stage.answer = Some("allow_once");
    stage.say("write it", Mode::Agent);
    stage.done(1).await;
    let result = told(&script).pop().expect("a result");
    assert!(
        result.contains("New lint errors in `a.fake`:\n1:1 error: it is broken (fake)"),
        "{result}"
    );
    stage.say("go on", Mode::Agent);
    stage.done(2).await;
    let last = messages(&script).pop().expect("it was said");
    let found = "<linter_errors>\na.fake:\n  1:1 error it is broken\n</linter_errors>";
    assert!(last.contains(found), "{last}");
    stage.check("servers").await;
}

#[tokio::test]
async fn a_checker_that_takes_long_keeps_no_language_server_from_looking() {
    if !in_own_process("a_checker_that_takes_long_keeps_no_language_server_from_looking") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("it is there");
    let script = Script::new(|at, _| {
        let write = |name: &str| {
            let arguments = json!({ "file_path": name, "contents": "broken\n" });
            ending(vec![call("w", "write", &arguments)], EndReason::ToolUse)
        };
        match at {
            0 => write("notes.md"),
            1 => write("a.fake"),
            _ => ok(),
        }
    });
    let for_ever = "until [ -e never ]; do sleep 1; done";
    let mut settings = particular(&root, Duration::from_secs(5), for_ever);
    settings.lsp.insert("fake".to_owned(), fake());
    let mut stage = Stage::new(&root, &script, settings, built_in().clone());
    stage.answer = Some("allow_once");
    stage.say("write it", Mode::Agent);
    stage.done(1).await;
    let told = told(&script);
    assert!(
        told[0].contains("Not checked: checkers have not answered in time (notes.md)."),
        "{told:#?}"
    );
    assert!(told[1].contains("New lint errors in `a.fake`"), "{told:#?}");
    stage.check("a slow checker").await;
}

#[tokio::test]
async fn a_change_that_brings_errors_is_sent_back_before_anybody_is_asked_and_shown_if_it_is_meant() {
    if !in_own_process("a_change_that_brings_errors_is_sent_back_before_anybody_is_asked_and_shown_if_it_is_meant") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("it is there");
    fs::write(root.join("b.fake"), "import a\n").expect("written");
    let there = root.join("a.fake");
    let script = Script::new(move |at, _| {
        let arguments = json!({ "file_path": "a.fake", "contents": "broken\n" });
        match at {
            0 => ending(vec![call("w", "write", &arguments)], EndReason::ToolUse),
            1 => {
                assert!(!there.exists(), "nobody was asked");
                ending(vec![call("v", "write", &arguments)], EndReason::ToolUse)
            }
            _ => ok(),
        }
    });
    let mut settings = particular(&root, PATIENCE, COMPLAINS);
    settings.approvals.run = "ask".to_owned();
    settings.lsp.insert("fake".to_owned(), fake());
    let mut stage = Stage::new(&root, &script, settings, built_in().clone());
    stage.answer = Some("allow_once");
    stage.say("write it", Mode::Agent);
    stage.done(1).await;
    let told = told(&script);
    let found = "New lint errors in `a.fake`:\n1:1 error: it is broken (fake)\n\
                 New lint errors in `b.fake`:\n1:1 error[7]: what it imports is broken";
    assert!(
        told[0].contains("EDIT_BRINGS_ERRORS") && told[0].contains(found),
        "{told:#?}"
    );
    assert!(told[1].contains(found) && !told[1].contains("EDIT"), "{told:#?}");
    assert_eq!(
        fs::read_to_string(root.join("a.fake")).expect("it was made"),
        "broken\n"
    );
    stage.check("previews").await;
}

#[tokio::test]
async fn a_checker_sees_a_proposal_that_nobody_has_written() {
    if !in_own_process("a_checker_sees_a_proposal_that_nobody_has_written") {
        return;
    }
    if Commands::tier() != Tier::Full {
        return crate::skipped("there is no full sandbox here, and without one no checker sees a proposal");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("it is there");
    fs::write(root.join("notes.md"), "old\n").expect("written");
    let script = Script::new(|at, _| {
        let write = |id: &str, contents: &str| {
            let arguments = json!({ "file_path": "notes.md", "contents": contents });
            ending(vec![call(id, "write", &arguments)], EndReason::ToolUse)
        };
        let read = json!({ "target_file": "notes.md" });
        match at {
            0 => ending(vec![call("r", "read_file", &read)], EndReason::ToolUse),
            1 => ending(
                vec![call("l", "read_lints", &json!({ "paths": ["notes.md"] }))],
                EndReason::ToolUse,
            ),
            2 => write("a", "old\nbroken\n"),
            3 => write("b", "old\nfine\n"),
            _ => ok(),
        }
    });
    // What it writes is gone for the next one.
    let looks = "[ -e \"$TMPDIR\"/left ] && echo 'notes.md:1:1: error: left'; \
                 grep -q broken notes.md && touch \"$TMPDIR\"/left; \
                 awk '/broken/ {print \"notes.md:\" NR \":1: error: \" $0}' notes.md";
    let mut settings = particular(&root, PATIENCE, looks);
    settings.approvals.run = "ask".to_owned();
    let mut stage = Stage::new(&root, &script, settings, built_in().clone());
    stage.answer = Some("allow_once");
    stage.say("write it", Mode::Agent);
    stage.done(1).await;
    let told = told(&script);
    assert!(
        told[2].contains("EDIT_BRINGS_ERRORS") && told[2].contains("notes.md`:\n2:1 error: broken (markdown)"),
        "{told:#?}"
    );
    assert!(
        told[3].contains("Changed `notes.md`") && !told[3].contains("lint"),
        "{told:#?}"
    );
    assert_eq!(
        fs::read_to_string(root.join("notes.md")).expect("it is there"),
        "old\nfine\n"
    );
    stage.check("overlays").await;
}
