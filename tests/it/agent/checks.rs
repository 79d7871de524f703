//! What checkers find goes with the next message, without anybody having asked for it.

use std::collections::BTreeSet;

use sheaf::sandbox::{Commands, Tier};

use super::*;

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
    if Commands::tier() == Tier::None {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("it is there");
    let script = writer();
    let mut stage = Stage::new(&root, &script, settings(&[&root]), TOOLS.to_vec());
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
        let mut stage = Stage::new(&root, &script, settings, TOOLS.to_vec());
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
