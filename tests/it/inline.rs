//! `--inline`: the real binary without the alternate screen.

use crate::{
    mock_model::Model,
    pty::{Sheaf, Start},
};

const ALTERNATE: &[u8] = b"\x1b[?1049h";
const CLEAR: &[u8] = b"\x1b[2J";

fn start(model: &Model) -> Sheaf {
    let start = Start::new(&["--no-session", "--inline"])
        .with("OPENAI_BASE_URL", &model.url)
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_MODEL", "scripted");
    let sheaf = start.run();
    sheaf.wait_for("Ask anything");
    sheaf
}

fn answer(sheaf: &Sheaf, model: &Model, question: &str, words: &[&str]) {
    sheaf.send(&format!("{question}\r"));
    let answer = model.asked();
    for it in words {
        answer.says(it);
        let line = it.trim_end().lines().last().unwrap_or_default().to_owned();
        sheaf.wait_for(&line);
    }
    answer.finish();
    sheaf.wait_until("the answer is over", |seen| !seen.shows("agent ◐"));
}

#[test]
fn what_has_ended_stands_in_the_terminals_own_lines() {
    let model = Model::start();
    let sheaf = start(&model);
    let long: Vec<String> = (1..=40).map(|it| format!("point {it}\n\n")).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    answer(&sheaf, &model, "count", &long);
    answer(&sheaf, &model, "and?", &["That was all."]);
    sheaf.wait_until("the region is below what was said", |seen| {
        let said = seen.line_of("That was all.");
        let rule = seen.line_of("── agent ─");
        said.is_some() && said < rule
    });
    assert!(
        sheaf.look(|seen| !seen.wrote(ALTERNATE) && !seen.wrote(CLEAR)),
        "{}",
        sheaf.picture()
    );
    // Each point went up exactly once, in order: the scrolled lines and those in view are the conversation.
    let said = sheaf.look(super::pty::Seen::history);
    let points = said.iter().filter_map(|it| Some(it.split_once("point ")?.1.trim()));
    let points: Vec<u32> = points.filter_map(|it| it.parse().ok()).collect();
    assert_eq!(points, (1..=40).collect::<Vec<u32>>(), "{said:#?}");
    sheaf.send("/quit\r");
    assert_eq!(sheaf.exit(), 0, "{}", sheaf.picture());
    assert!(!sheaf.is_raw());
    sheaf.wait_until("the region is gone", |seen| {
        !seen.shows("── agent ─") && !seen.shows("Ask anything") && seen.shows("That was all.")
    });
}

#[test]
fn a_page_borrows_the_alternate_screen_and_gives_it_back() {
    let model = Model::start();
    let sheaf = start(&model);
    answer(&sheaf, &model, "hello", &["Good evening."]);
    sheaf.send("/help\r");
    sheaf.wait_for("Keys and commands");
    assert!(sheaf.look(|seen| seen.screen().alternate_screen()));
    sheaf.send("\x1b");
    sheaf.wait_until("the conversation is back", |seen| {
        !seen.screen().alternate_screen() && seen.shows("Good evening.") && seen.shows("── agent ─")
    });
    sheaf.send("grüße");
    sheaf.wait_for("› grüße");
}
