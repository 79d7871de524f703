//! `--plain`: the real binary in lines, with nothing that a screen reader would stumble over.

use crate::{
    mock_model::Model,
    pty::{Sheaf, Start},
};

fn start(model: &Model) -> Start {
    Start::new(&["--no-session", "--plain"])
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
}

fn is_only_text(sheaf: &Sheaf) -> bool {
    sheaf.look(|seen| {
        seen.raw
            .iter()
            .all(|it| *it >= b' ' || matches!(it, b'\n' | b'\r' | b'\t'))
    })
}

#[test]
fn lines_go_in_and_labelled_lines_come_out() {
    let model = Model::start();
    let sheaf = start(&model).run();
    sheaf.wait_for("your turn, agent mode");
    sheaf.send("what is a sheaf?\n");
    let answer = model.asked();
    assert_eq!(answer.message(), "what is a sheaf?");
    answer.says("A bundle of stalks, **bound** together.");
    answer.finish();
    sheaf.wait_for("1.1 text");
    sheaf.wait_for("  A bundle of stalks, bound together.");
    sheaf.send("/mode\n");
    sheaf.wait_for("  3 plan, reads, asks and writes a plan");
    sheaf.send("3\n");
    sheaf.wait_for("your turn, plan mode");
    sheaf.send("/nothing\n");
    sheaf.wait_for("note: unknown command /nothing");
    assert!(is_only_text(&sheaf), "{}", sheaf.picture());
    assert!(!sheaf.is_raw());
    sheaf.send("/quit\n");
    assert_eq!(sheaf.exit(), 0, "{}", sheaf.picture());
}

#[test]
fn what_is_pasted_is_one_message() {
    let model = Model::start();
    let sheaf = start(&model).run();
    sheaf.wait_for("your turn, agent mode");
    sheaf.send("first\nsecond\nthi");
    sheaf.wait_for("2 lines pasted");
    sheaf.send("rd\n");
    let answer = model.asked();
    assert_eq!(answer.message(), "first\nsecond\nthird");
    answer.says("To all three.");
    answer.finish();
    sheaf.wait_for("  To all three.");
    assert!(is_only_text(&sheaf), "{}", sheaf.picture());
}

#[test]
fn lines_of_a_pipe_wait_for_each_other() {
    let model = Model::start();
    let sheaf = start(&model).piped("first\nsecond\n").run();
    for words in ["first", "second"] {
        let answer = model.asked();
        assert_eq!(answer.message(), words);
        answer.says(&format!("To the {words}."));
        answer.finish();
        sheaf.wait_for(&format!("  To the {words}."));
    }
    assert_eq!(sheaf.exit(), 0, "{}", sheaf.picture());
    assert!(is_only_text(&sheaf), "{}", sheaf.picture());
}

#[test]
fn a_yes_does_not_write_what_was_left_out_in_the_review() {
    let model = Model::start();
    let before = "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n";
    let sheaf = Start::new(&["--no-session", "--plain", "--set", "approvals.run=ask"])
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted")
        .file("work/a.txt", before)
        .size(200, 60)
        .piped("change it\n/review\nr\n\ny\nn, not now\n")
        .run();
    model
        .asked()
        .calls(&[("read_file", serde_json::json!({ "target_file": "a.txt" }))]);
    let after = "ONE\n2\n3\n4\nFIVE\n6\n7\n8\nNINE\n";
    model
        .asked()
        .calls(&[("write", serde_json::json!({ "file_path": "a.txt", "contents": after }))]);
    sheaf.wait_for("1 rejected; /review continues");
    sheaf.wait_for("you already decided on single hunks");
    let answer = model.asked();
    let told = answer.results().concat();
    assert!(told.contains("TOOL_REJECTED") && told.contains("not now"), "{told}");
    let now = std::fs::read_to_string(sheaf.home().join("work/a.txt")).expect("a file");
    assert_eq!(now, before);
    answer.finish();
    assert_eq!(sheaf.exit(), 0, "{}", sheaf.picture());
    assert!(is_only_text(&sheaf), "{}", sheaf.picture());
}

#[test]
fn a_paste_is_sent_when_the_input_ends() {
    let model = Model::start();
    let sheaf = start(&model).run();
    sheaf.wait_for("your turn, agent mode");
    sheaf.send("first\nsecond\n");
    sheaf.wait_for("2 lines pasted");
    sheaf.send("\u{4}");
    let answer = model.asked();
    assert_eq!(answer.message(), "first\nsecond");
    answer.says("To both.");
    answer.finish();
    sheaf.wait_for("  To both.");
    assert_eq!(sheaf.exit(), 0, "{}", sheaf.picture());
}
