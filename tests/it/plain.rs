//! `--plain`: the real binary in lines, with nothing that a screen reader would stumble over.

use crate::{
    dictation::Model,
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
    sheaf.wait_for("  2 plan, reads, asks and writes a plan");
    sheaf.send("2\n");
    sheaf.wait_for("your turn, plan mode");
    sheaf.send("/nothing\n");
    sheaf.wait_for("note: there is no command /nothing");
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
    sheaf.wait_for("2 lines were pasted");
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
