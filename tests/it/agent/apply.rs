//! A sketch that the tiers refuse, and a model of `roles.apply` that merges it: wrongly first, then rightly.

use std::{sync::mpsc, thread};

use sheaf::config::{self, CommandLineSettings, SettingsFile};

use super::*;
use crate::mock_model;

const BEFORE: &str = "\
fn one() {
    start();
    stop();
}

fn two() {
    start();
    stop();
}
";
/// The lines around the change stand in both functions; the head of the second says which is meant.
const SKETCH: &str = "\
// ... existing code ...
fn two() {
    // ... existing code ...
    start();
    work();
    stop();
// ... existing code ...
";

fn settings(root: &Path, url: &str) -> Settings {
    let path = root.join("config.toml");
    let text = format!(
        "[providers.merger]\nkind = \"openai\"\nbase_url = \"{url}\"\n\n[roles]\napply = \"merger/morph-v3-fast\"\n\n\
         [agent]\nedit_style = \"sketch\"\n"
    );
    fs::write(&path, text).expect("written");
    let user = SettingsFile::read(&path)
        .expect("a file that can be read")
        .expect("it is there");
    let (settings, problems) = config::merge(
        Some(&user),
        None,
        &Environment::default(),
        &CommandLineSettings::default(),
    );
    assert!(problems.is_empty(), "{problems:?}");
    settings
}

#[tokio::test]
async fn an_apply_model_is_believed_only_where_it_is_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.rs");
    fs::write(&file, BEFORE).expect("written");
    let after = format!("{BEFORE}\n").replace(
        "}\n\nfn two() {\n    start();\n",
        "}\n\nfn two() {\n    start();\n    work();\n",
    );
    let after = after.trim_end().to_owned() + "\n";
    // The first answer loses a line of another function.
    let answers = [
        after.replacen("    stop();\n", "", 1),
        format!("<updated-code>\n{after}</updated-code>"),
    ];
    let (send, urls) = mpsc::channel();
    let merger = thread::spawn(move || {
        // It has a runtime of its own.
        let merger = mock_model::Model::start();
        send.send(merger.url.clone()).expect("the test waits");
        let requests = answers.map(|text| {
            let answer = merger.asked();
            answer.says(&text);
            let request = answer.request.clone();
            answer.finish();
            request
        });
        // It lives until the last answer has been read.
        (merger, requests)
    });
    let edit = json!({ "target_file": "a.rs", "instructions": "I call work.", "code_edit": SKETCH });
    let read = file.clone();
    let script = Script::new(move |at, _| match at {
        0 => ending(
            vec![call("1", "read_file", &json!({ "target_file": "a.rs" }))],
            EndReason::ToolUse,
        ),
        1 | 2 => {
            assert_eq!(
                fs::read_to_string(&read).expect("a file"),
                BEFORE,
                "a wrong answer changes nothing"
            );
            ending(
                vec![call(&(at + 1).to_string(), "edit_file", &edit)],
                EndReason::ToolUse,
            )
        }
        _ => ok(),
    });
    let settings = settings(own.path(), &urls.recv().expect("an address"));
    let mut stage = Stage::new(folder.path(), &script, settings, built_in().clone());
    stage.answer = Some("allow_once");
    stage.say("go", Mode::Agent);
    stage.done(1).await;
    assert_eq!(fs::read_to_string(&file).expect("a file"), after);
    let edits: Vec<_> = stage
        .documents()
        .into_iter()
        .filter(|it| it.kind == Kind::FileEdit)
        .map(|it| it.text().to_owned())
        .filter(|it| !it.is_empty())
        .collect();
    assert_eq!(edits.len(), 1, "{edits:?}");
    assert!(edits[0].contains("work();"), "{edits:?}");
    // The model knows what the tiers say, and why the answer was not used.
    let told = format!("{:?}", script.asked()[2].messages.last());
    for text in [
        "the sketch was not merged into `a.rs`",
        "the apply model's answer for `a.rs` was not used",
        "it lacks line 3 of the file, `stop();`",
        "three unchanged lines",
    ] {
        assert!(told.contains(text), "{text}: {told}");
    }
    // A model that was trained for it gets one message, as its maker says.
    let (_merger, requests) = merger.join().expect("two requests");
    for request in requests {
        let question =
            format!("<instruction>I call work.</instruction>\n<code>{BEFORE}</code>\n<update>{SKETCH}</update>");
        assert_eq!(request["model"], "morph-v3-fast");
        assert_eq!(request["messages"], json!([{ "role": "user", "content": question }]));
    }
}
