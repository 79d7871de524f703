//! What keeps an answer from going on for ever, and what a conversation keeps of it.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn a_model_that_goes_round_in_circles_is_stopped() {
    let mut talk = Talk::begin();
    let mut shown = String::new();
    for nth in 1..=5 {
        talk.all([
            call(&format!("a{nth}"), "look", json!({})),
            ends(EndReason::ToolUse),
            harmless(nth),
        ]);
        shown = talk.says(broke(nth, "no such thing"));
        assert_eq!(talk.results()[0].contains("failed three times"), nth == 3, "{nth}");
    }
    assert!(shown.ends_with("done error error"), "{shown}");

    let mut talk = Talk::begin();
    for nth in 1..=4 {
        talk.all([
            call(&format!("a{nth}"), "look", json!({})),
            ends(EndReason::ToolUse),
            harmless(nth),
        ]);
        shown = talk.says(ran(nth, "the same"));
    }
    assert!(shown.ends_with("~Go on? yes/no"), "{shown}");
    assert!(talk.says(answer("doc_005", "yes")).ends_with("call m with 9"));
}

#[test]
fn after_so_many_requests_the_user_is_asked_or_the_answer_ends() {
    for is_attended in [true, false] {
        let mut said = submission("hi");
        said.limits.requests = 2;
        said.asker = if is_attended { Asker::Here } else { Asker::Nobody };
        let mut talk = Talk::of(said);
        let mut shown = String::new();
        for nth in 1..=2 {
            talk.all([
                call(&format!("a{nth}"), "look", json!({})),
                ends(EndReason::ToolUse),
                harmless(nth),
            ]);
            shown = talk.says(ran(nth, &nth.to_string()));
        }
        if is_attended {
            assert!(shown.ends_with("~Go on? yes/no"), "{shown}");
            assert!(talk.says(answer("doc_003", "no")).ends_with("done completed max_turns"));
        } else {
            assert!(shown.ends_with("done completed max_turns"), "{shown}");
        }
    }
}

#[test]
fn a_conversation_that_no_longer_fits_loses_its_oldest_results_once() {
    let mut talk = Talk::begin();
    for nth in 1..=6 {
        talk.all([
            call(
                &format!("a{nth}"),
                "look",
                json!({ "n": nth, "file_path": nth.to_string() }),
            ),
            ends(EndReason::ToolUse),
            harmless(nth),
        ]);
        talk.says(ran(nth, &"x".repeat(1000)));
    }
    assert!(
        talk.says(fails(FailureKind::TooLong))
            .ends_with("notice compacted | call m with 13")
    );
    let lengths: Vec<usize> = asked(&talk.effects)
        .messages
        .iter()
        .filter_map(|it| match it {
            ModelMessage::Results(results) => results.first().map(|it| it.text.len()),
            ModelMessage::User(_) | ModelMessage::Assistant(_) => None,
        })
        .collect();
    assert!(
        lengths[..2].iter().all(|it| *it < 200) && lengths[2..].iter().all(|it| *it == 1000),
        "{lengths:?}"
    );
    assert!(talk.says(fails(FailureKind::TooLong)).ends_with("done error error"));
}

#[test]
fn what_was_sent_is_only_added_to() {
    let mut talk = Talk::begin();
    let first = asked(&talk.effects).clone();
    talk.all([
        call("a", "look", json!({})),
        ends(EndReason::ToolUse),
        harmless(1),
        ran(1, "x"),
    ]);
    let second = asked(&talk.effects).clone();
    talk.all([says("ok"), ends(EndReason::Stop)]);
    talk.effects = talk.turn.step(submit("more"), 0);
    let third = asked(&talk.effects).clone();
    for (before, after) in [(&first, &second), (&second, &third)] {
        assert_eq!(after.messages[..before.messages.len()], before.messages[..]);
        assert_eq!((&after.system, &after.tools), (&before.system, &before.tools));
    }
}
