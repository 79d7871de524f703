//! From a turn to a commit in the real binary, with real git; and its note, read in another clone.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::json;

use crate::{
    mock_model::Model,
    pty::{Sheaf, Start},
};

const REVIEW: &str = "\x1b[114;3u";

const GIT: &str = "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n";

fn ran(program: &str, home: &Path, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .output()
        .expect("it starts")
}

fn git(sheaf: &Sheaf, arguments: &[&str]) -> String {
    let output = ran("git", sheaf.home(), &sheaf.home().join("work"), arguments);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// A repository with a commit, in which the model has changed two places of a file and the person another file.
fn changed(model: &Model) -> Sheaf {
    let sheaf = Start::new(&[])
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
        .file(".gitconfig", GIT)
        .file("work/cart.rs", TEN)
        .file("work/mine", "1\n")
        .size(100, 40)
        .run();
    sheaf.wait_for("Ask anything");
    git(&sheaf, &["init", "-q"]);
    git(&sheaf, &["add", "."]);
    git(&sheaf, &["commit", "-q", "-m", "first"]);
    std::fs::write(sheaf.home().join("work/mine"), "2\n").expect("a file");
    sheaf.send("round the totals\r");
    model
        .asked()
        .calls(&[("read_file", json!({ "target_file": "cart.rs" }))]);
    let text = TEN.replace("2\n", "two\n").replace("9\n", "nine\n");
    model
        .asked()
        .calls(&[("write", json!({ "file_path": "cart.rs", "contents": text }))]);
    let answer = model.asked();
    answer.says("Rounded.");
    answer.finish();
    sheaf.wait_for("Rounded.");
    sheaf.wait_until("the answer is over", |seen| !seen.shows("agent ◐"));
    sheaf
}

/// Opens the review, accepts its first hunk and opens the card.
fn open_card(sheaf: &Sheaf, model: &Model, message: &str) {
    sheaf.send(REVIEW);
    sheaf.wait_for("1 of 2");
    sheaf.insist_slowly("a", "the first hunk is accepted", |seen| seen.shows("1 accepted"));
    sheaf.send("C");
    sheaf.wait_for("Commit 1 change in 1 file to main");
    let answer = model.asked();
    let asked = answer.request.to_string();
    assert!(asked.contains("+two") && !asked.contains("+nine"), "{asked}");
    assert!(asked.contains("round the totals") && asked.contains("first"), "{asked}");
    answer.says(message);
    answer.finish();
    sheaf.wait_for(message);
}

#[test]
fn a_turn_is_committed_hunk_by_hunk_and_its_note_is_read_in_a_second_clone() {
    let model = Model::start();
    let sheaf = changed(&model);
    open_card(&sheaf, &model, "cart: round the totals");
    for text in ["Author: Ada <ada@example.org>", "refs/notes/sheaf", "Nothing is pushed"] {
        assert!(sheaf.look(|seen| seen.shows(text)), "{text}\n{}", sheaf.picture());
    }
    sheaf.send(", halves up");
    sheaf.wait_for("cart: round the totals, halves up");
    sheaf.insist("\r", "it is committed", |seen| !seen.shows("Author: Ada"));
    assert_eq!(
        git(&sheaf, &["log", "--format=%s"]),
        "cart: round the totals, halves up\nfirst\n"
    );
    let patch = git(&sheaf, &["show", "--format=", "-U0", "HEAD"]);
    assert!(patch.contains("-2\n+two\n") && !patch.contains("nine"), "{patch}");
    assert_eq!(git(&sheaf, &["diff", "--cached"]), "");
    assert_eq!(git(&sheaf, &["status", "--short"]), " M cart.rs\n M mine\n");
    // The transcript says how to take it back.
    sheaf.wait_for("git reset --soft HEAD~1");
    // A second clone, on another machine.
    let there = sheaf.home().join("there");
    std::fs::create_dir(&there).expect("a folder");
    git(&sheaf, &["init", "-q", "--bare", "../there/origin"]);
    git(&sheaf, &["remote", "add", "origin", "../there/origin"]);
    git(&sheaf, &["push", "-q", "origin", "main"]);
    git(&sheaf, &["push", "-q", "origin", "refs/notes/sheaf"]);
    git(&sheaf, &["clone", "-q", "../there/origin", "../there/clone"]);
    let clone = there.join("clone");
    let why = |place: &str| ran(env!("CARGO_BIN_EXE_sheaf"), &there, &clone, &["why", place]);
    assert_eq!(why("cart.rs:2").status.code(), Some(1), "the notes are not there yet");
    let fetched = ran(
        "git",
        &there,
        &clone,
        &["fetch", "-q", "origin", "refs/notes/sheaf:refs/notes/sheaf"],
    );
    assert!(fetched.status.success());
    let told = String::from_utf8(why("cart.rs:2").stdout).expect("text");
    for text in ["two", "1.", "scripted", "› round the totals", "refs/notes/sheaf"] {
        assert!(told.contains(text), "{text}\n{told}");
    }
    assert_eq!(why("cart.rs:9").status.code(), Some(1), "nobody but the first commit");
    let help = ran(env!("CARGO_BIN_EXE_sheaf"), &there, &clone, &["why", "--help"]);
    let help = String::from_utf8(help.stdout).expect("text");
    for command in [
        "git push origin refs/notes/sheaf",
        "git fetch origin refs/notes/sheaf:refs/notes/sheaf",
    ] {
        assert!(help.contains(command), "{help}");
    }
}

#[test]
fn esc_leaves_everything_and_a_failing_hook_loses_nothing() {
    let model = Model::start();
    let sheaf = changed(&model);
    let hook = sheaf.home().join("work/.git/hooks/pre-commit");
    std::fs::write(&hook, "#!/bin/sh\necho the tests fail >&2\nexit 1\n").expect("a file");
    Command::new("chmod").arg("+x").arg(&hook).status().expect("chmod");
    let before = git(&sheaf, &["status", "--short"]);
    open_card(&sheaf, &model, "cart: round the totals");
    sheaf.wait_for("pre-commit");
    sheaf.send("\x1b[27u");
    sheaf.wait_gone("Author: Ada");
    assert_eq!(git(&sheaf, &["status", "--short"]), before);
    sheaf.send("C");
    sheaf.wait_for("Commit 1 change in 1 file to main");
    model.asked().finish();
    sheaf.send("!");
    sheaf.insist("\r", "the hook failed", |seen| seen.shows("the tests fail"));
    assert!(sheaf.look(|seen| seen.shows("Update cart.rs!")), "{}", sheaf.picture());
    assert_eq!(git(&sheaf, &["log", "--format=%s"]), "first\n");
    assert_eq!(git(&sheaf, &["status", "--short"]), before);
    // The hook is content: the message is still there.
    std::fs::remove_file(&hook).expect("it was there");
    sheaf.insist("\r", "it is committed", |seen| !seen.shows("Author: Ada"));
    assert_eq!(git(&sheaf, &["log", "--format=%s"]), "Update cart.rs!\nfirst\n");
}

/// A hook or a signing program that asked there would hang, and write over the screen.
#[test]
fn a_hook_has_no_terminal() {
    let model = Model::start();
    let sheaf = changed(&model);
    let hook = sheaf.home().join("work/.git/hooks/pre-commit");
    let script =
        "#!/bin/sh\nif (: </dev/tty) 2>/dev/null; then echo it has a terminal; else echo it has none; fi\nexit 1\n";
    std::fs::write(&hook, script).expect("a file");
    Command::new("chmod").arg("+x").arg(&hook).status().expect("chmod");
    open_card(&sheaf, &model, "cart: round the totals");
    sheaf.insist("\r", "the hook has run", |seen| seen.shows("it has"));
    assert!(sheaf.look(|seen| seen.shows("it has none")), "{}", sheaf.picture());
}

/// A commit is one once `HEAD` has moved: what the person's index says must not take it back.
#[test]
fn quitting_while_a_hook_runs_after_the_commit_leaves_nothing_half_done() {
    for ends in ["quit", "terminate"] {
        let model = Model::start();
        let sheaf = changed(&model);
        let hook = sheaf.home().join("work/.git/hooks/post-commit");
        std::fs::write(&hook, "#!/bin/sh\nsleep 600\n").expect("a file");
        Command::new("chmod").arg("+x").arg(&hook).status().expect("chmod");
        let before = git(&sheaf, &["status", "--short"]);
        open_card(&sheaf, &model, "cart: round the totals");
        sheaf.insist("\r", "git runs", |seen| seen.shows("Committing."));
        // The conversation says so while the hook runs.
        sheaf.send("\x1b[27u\x1b[27u");
        sheaf.wait_for("git reset --soft HEAD~1");
        assert_eq!(git(&sheaf, &["diff", "--cached"]), "");
        if ends == "quit" {
            sheaf.send("/quit\r");
            sheaf.wait_for("a commit is running");
            sheaf.send("/quit\r");
            sheaf.assert_left(0);
        } else {
            sheaf.signal(rustix::process::Signal::TERM);
            sheaf.assert_left(143);
        }
        assert_eq!(git(&sheaf, &["log", "--format=%s"]), "cart: round the totals\nfirst\n");
        assert_eq!(git(&sheaf, &["diff", "--cached"]), "");
        assert_eq!(git(&sheaf, &["status", "--short"]), before);
        assert!(!git(&sheaf, &["notes", "--ref=sheaf", "show", "HEAD"]).is_empty());
    }
}
