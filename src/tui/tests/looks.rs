//! Pictures of what opens over a conversation, at four widths.

use super::{
    super::{
        msg::{EffectOutcome, Msg},
        test_app::*,
    },
    finding::conversation,
    reviewing::changed,
};
use crate::protocol::{Done, Event, Message, Mode};

const WIDTHS: [u16; 4] = [40, 80, 120, 200];

/// One picture a width, without the time of day, which is the machine's own.
fn pictures(open: impl Fn(u16) -> TestApp) -> String {
    let mut text = String::new();
    for width in WIDTHS {
        let desk = open(width);
        text.push_str(&format!("{width} {}\n", "=".repeat(usize::from(width) - 4)));
        for line in desk.picture().lines() {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn after(desk: TestApp, keys: &str) -> TestApp {
    let mut desk = desk;
    desk.keys(keys);
    desk
}

#[test]
fn the_outline() {
    insta::with_settings!({ filters => vec![(r"\d\d:\d\d\b", "HH:MM")] }, {
        insta::assert_snapshot!(pictures(|width| after(conversation(width, 18), "<tab>v<up><up>")));
    });
}

#[test]
fn a_search() {
    insta::with_settings!({ filters => vec![(r"\d\d:\d\d\b", "HH:MM")] }, {
        insta::assert_snapshot!(pictures(|width| after(conversation(width, 24), "<tab>g/cart")));
    });
}

#[test]
fn a_filter() {
    insta::with_settings!({ filters => vec![(r"\d\d:\d\d\b", "HH:MM")] }, {
        insta::assert_snapshot!(pictures(|width| after(conversation(width, 24), "/filter failed<enter><tab>f")));
    });
}

#[test]
fn a_review() {
    insta::assert_snapshot!(pictures(|width| {
        let mut desk = changed(width);
        desk.resize(width, 16);
        after(desk, "<alt+r>")
    }));
}

#[test]
fn the_header_has_the_parts_that_are_wanted_and_always_says_what_holds_commands() {
    use crate::link::{Held, SandboxStatus};
    let header = |desk: &mut TestApp| {
        desk.app.viewport.bars = None;
        desk.draw();
        desk.picture().lines().next().unwrap_or_default().to_owned()
    };
    let mut desk = TestApp::new(120, 24);
    desk.app.conversation.about.hold = SandboxStatus::default();
    desk.app.conversation.about.hold.found(Held::Whole);
    assert!(
        header(&mut desk).ends_with("model  sandbox full"),
        "{}",
        header(&mut desk)
    );
    desk.app.preferences.settings.ui.status = vec!["sandbox".to_owned(), "model".to_owned()];
    assert!(
        header(&mut desk).ends_with("sandbox full  model"),
        "{}",
        header(&mut desk)
    );
    desk.app.preferences.settings.ui.status.clear();
    assert!(header(&mut desk).ends_with("  sandbox full"), "{}", header(&mut desk));
    assert!(!header(&mut desk).contains("model"), "{}", header(&mut desk));
    desk.app.conversation.about.hold.found(Held::Nothing);
    assert!(header(&mut desk).ends_with("NO SANDBOX"), "{}", header(&mut desk));
}

#[test]
fn a_command_of_the_user_s_says_what_stands_in_the_header() {
    use crate::tui::app::{Status, StatusRun};
    let mut desk = TestApp::new(100, 24);
    assert_eq!(desk.app.status_due(), None, "there is no command");
    desk.app.status = Status::new(vec!["me".to_owned(), "now".to_owned()]);
    let StatusRun { command, state, size } = desk.app.status_due().expect("it has heard nothing yet");
    assert_eq!((command, size), (vec!["me".to_owned(), "now".to_owned()], (100, 24)));
    let state: serde_json::Value = serde_json::from_str(&state).expect("it is JSON");
    assert_eq!(
        (&state["sheaf"]["mode"], &state["model"]["id"]),
        (&"agent".into(), &"model".into())
    );
    // The members that scripts for Claude Code read.
    for member in [
        "session_id",
        "cwd",
        "version",
        "workspace",
        "output_style",
        "cost",
        "context_window",
    ] {
        assert!(state.get(member).is_some(), "{member}");
    }
    assert_eq!(state["context_window"]["current_usage"], serde_json::Value::Null);
    assert!(state.get("vim").is_none());
    desk.app.composer.mode = Mode::Plan;
    assert_eq!(desk.app.status_due(), None, "it runs");
    desk.take(Msg::Done(EffectOutcome::Status(Ok(
        "\u{1b}[31mmine\u{1b}[0m and\nmore".into(),
    ))));
    assert!(
        desk.picture().lines().next().is_some_and(|it| it.ends_with("mine and")),
        "{}",
        desk.picture()
    );
    assert!(
        desk.picture().lines().nth(1).is_some_and(|it| it == " more"),
        "{}",
        desk.picture()
    );
    let colours: Vec<_> = desk
        .app
        .status
        .line()
        .and_then(Result::ok)
        .unwrap_or_default()
        .iter()
        .map(|it| it.role)
        .collect();
    assert_eq!(colours.len(), 2, "{colours:?}");
    assert_ne!(colours[0], colours[1]);
    assert!(
        desk.app.status_due().is_some_and(|it| it.state.contains("\"plan\"")),
        "the mode is news"
    );
    desk.take(Msg::Done(EffectOutcome::Status(Err("me: exit status 1".into()))));
    assert!(desk.shows("me: exit status 1"), "{}", desk.picture());
    assert_eq!(desk.app.status_due(), None, "nothing has changed");
    desk.resize(40, 30);
    assert!(
        desk.app.status_due().is_some_and(|it| it.size == (40, 30)),
        "the size is news"
    );
}

#[test]
fn a_model_that_is_chosen_while_an_answer_runs_is_named_when_it_writes() {
    let mut desk = TestApp::new(120, 24);
    let header = |desk: &mut TestApp| {
        desk.app.viewport.bars = None;
        desk.draw();
        desk.picture().lines().next().unwrap_or_default().to_owned()
    };
    desk.events([Event::UserMessage(Message::user("go"))]);
    for name in ["other", "third"] {
        desk.keys(&format!("/model {name}<enter>"));
        assert!(header(&mut desk).contains("  model"), "{}", header(&mut desk));
        assert!(!header(&mut desk).contains(name), "{}", header(&mut desk));
    }
    desk.events([Event::Done(Done::default())]);
    assert!(header(&mut desk).contains("  third"), "{}", header(&mut desk));
}
