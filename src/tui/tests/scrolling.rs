//! Scrolling moves the view by as many lines as it says, and a reader who has stopped somewhere stays there.

use super::*;
use crate::{
    journal::Log,
    tui::{
        terminal::Input,
        widgets::transcript::{Following, VisibleLine},
    },
};

/// A conversation of long and short documents, so that any distance crosses some of their borders.
fn conversation() -> Arc<Log> {
    let log = Log::new();
    for turn in 1..=6 {
        log.append(1, Event::UserMessage(Message::user(format!("question {turn}"))));
        for (nth, lines) in [1, 7, 2].into_iter().enumerate() {
            let text = (1..=lines * turn).map(|it| format!("turn {turn} text {nth} line {it}\n\n"));
            let kind = if nth == 1 { "code_block" } else { "text" };
            for event in document(&format!("d{nth}"), kind, Some(&text.collect::<String>()), json!({})) {
                log.append(1, event);
            }
        }
        log.append(1, Event::Done(Done::default()));
    }
    log
}

/// All lines of the conversation: those in view of a screen that shows the whole.
fn all_lines(log: &Arc<Log>, width: u16) -> Vec<VisibleLine> {
    let mut desk = TestApp::on(Arc::clone(log), width, 900);
    desk.events([]);
    desk.app.viewport.pane.lines.clone()
}

fn lines_in_view(desk: &TestApp) -> Vec<VisibleLine> {
    desk.app.viewport.pane.lines.clone()
}

#[test]
fn a_view_moves_by_as_many_lines_as_it_is_told_to() {
    let log = conversation();
    let all = all_lines(&log, 60);
    let mut desk = TestApp::on(Arc::clone(&log), 60, 20);
    desk.events([]);
    let height = desk.app.viewport.pane.lines.len();
    let last = all.len() - height;
    assert_eq!(lines_in_view(&desk), all[last..], "the end is shown at first");
    let page = desk.app.viewport.pane.page();
    let mut top = last as isize;
    let mut check = |desk: &TestApp, by: isize, what: &str| {
        top = (top + by).clamp(0, last as isize);
        let from = top as usize;
        assert_eq!(
            lines_in_view(desk),
            all[from..from + height],
            "{what} by {by} to {from}"
        );
    };
    for (down, by) in [(false, -3), (true, 3)] {
        for _ in 0..all.len() / 3 + 2 {
            desk.take(Msg::Input(Input::Wheel { down, x: 1, y: 5 }));
            check(&desk, by, "the wheel");
        }
    }
    desk.keys("<tab>");
    // Up and down again, past both ends.
    for (key, by) in [
        ("<shift+up>", -1),
        ("<shift+down>", 1),
        ("<pgup>", -page),
        ("<pgdn>", page),
    ] {
        for _ in 0..all.len() / by.unsigned_abs() + 2 {
            desk.keys(key);
            check(&desk, by, key);
        }
    }
}

#[test]
fn a_reader_who_has_stopped_at_a_document_stays_there_while_the_end_is_in_view() {
    let mut desk = TestApp::new(60, 24);
    desk.exchange("one", &["First answer.", "Second answer."]);
    desk.keys("<tab>kk");
    assert_eq!(desk.app.viewport.pane.follow, Following::Pinned);
    let before = lines_in_view(&desk);
    assert!(desk.shows("Second answer."), "the end is in view");
    desk.events([Event::UserMessage(Message::user("two"))]);
    desk.events(document("d9", "text", Some(&words(60)), json!({})));
    assert_eq!(desk.app.viewport.pane.follow, Following::Pinned);
    let after = lines_in_view(&desk);
    assert_eq!(after[..before.len()], before, "{}", desk.picture());
    // Who follows the end is led to it.
    desk.keys("G");
    desk.events(document("d10", "text", Some("The very last."), json!({})));
    assert!(desk.shows("The very last."));
}
