//! What the screen says of the sandbox, and how the user changes what commands may do where it is partial.

use std::fs;

use serde_json::json;

use crate::{
    mock_model::{Answer, Model},
    pty::{ALLOW, Sheaf, Start},
};

fn start(model: &Model, at_most: &str, arguments: &[&str]) -> Start {
    Start::new(
        &[
            &["--no-session", "--set", "approvals.allow=[\"Shell(touch)\"]"],
            arguments,
        ]
        .concat(),
    )
    .with("SHEAF_SANDBOX_AT_MOST", at_most)
    .with("OPENAI_BASE_URL", &model.url)
    .with("OPENAI_API_KEY", "sk-test")
    .with("OPENAI_MODEL", "scripted")
    .size(120, 40)
}

#[test]
fn the_header_names_what_holds_before_anything_is_typed() {
    for (at_most, arguments, expected) in [
        ("full", &["--sandbox", "off"][..], "NO SANDBOX"),
        ("none", &[], "NO SANDBOX"),
        ("partial", &[], "sandbox partial (.git top level, metadata)"),
    ] {
        let model = Model::start();
        let sheaf = start(&model, at_most, arguments).run();
        sheaf.wait_for(expected);
    }
}

/// What became of a command that the model asks for, in the words that the model reads.
fn run(model: &Model, answer: Answer, line: &str, meanwhile: impl FnOnce()) -> (Answer, String) {
    answer.calls(&[(
        "run_terminal_cmd",
        json!({ "command": line, "is_background": false, "timeout_ms": 60_000 }),
    )]);
    meanwhile();
    let next = model.asked();
    let told = next.results().pop().expect("a result");
    (next, told)
}

fn allow(sheaf: &Sheaf) {
    sheaf.wait_for("waiting for you");
    sheaf.insist(ALLOW, "the command is allowed", |seen| !seen.shows("waiting for you"));
}

#[test]
fn whoever_wants_guard_has_it_in_this_folder_until_a_command_abuses_it() {
    let model = Model::start();
    let sheaf = start(&model, "partial", &[])
        .file("work/.git/HEAD", "ref: refs/heads/main\n")
        .file("work/.git/config", "[core]\n")
        .run();
    let strict = "sandbox partial (.git top level, metadata)";
    sheaf.wait_for(strict);
    sheaf.send("hello\r");
    let answer = model.asked();
    // Nothing new at the top, and the model is told what to do about it.
    let (answer, told) = run(&model, answer, "touch new", || {});
    assert!(
        told.contains("/sandbox guard") && !sheaf.home().join("work/new").exists(),
        "{told}"
    );
    answer.says("I see.");
    answer.finish();
    sheaf.wait_for("I see.");
    sheaf.send("/sandbox\r");
    sheaf.wait_for("/sandbox guard allows it");
    sheaf.insist("\x1b", "the page is gone", |seen| !seen.shows("esc goes back"));
    sheaf.send("/sandbox guard\r");
    sheaf.wait_for("Guard is on in this folder");
    sheaf.insist("\x1b", "the page is gone", |seen| !seen.shows("esc goes back"));
    sheaf.wait_for("sandbox partial (guard: .git restored, metadata)");
    sheaf.send("and now?\r");
    let answer = model.asked();
    let (answer, told) = run(&model, answer, "touch new", || {});
    assert!(
        told.contains("(no output)") && sheaf.home().join("work/new").exists(),
        "{told}"
    );
    // What is protected is put back, and everybody is told.
    let (answer, told) = run(&model, answer, "echo evil > .git/config", || allow(&sheaf));
    assert!(told.contains("the command changed `.git/config`"), "{told}");
    let config = fs::read_to_string(sheaf.home().join("work/.git/config")).expect("it is there");
    assert_eq!(config, "[core]\n");
    sheaf.wait_for("the command changed `.git/config`");
    sheaf.wait_for(strict);
    // From there on the rule allows nothing, and the top is held.
    let (answer, told) = run(&model, answer, "touch newer", || allow(&sheaf));
    assert!(
        told.contains("/sandbox guard") && !sheaf.home().join("work/newer").exists(),
        "{told}"
    );
    answer.says("Well.");
    answer.finish();
    sheaf.wait_for("Well.");
    assert!(
        fs::read_to_string(sheaf.home().join(".local/state/sheaf/trust.json")).is_ok_and(|it| it.contains("guarded"))
    );
}
