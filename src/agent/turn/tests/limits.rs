//! What keeps an answer from going on for ever, and what a conversation keeps of it.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn a_model_that_goes_round_in_circles_is_stopped() {
    for (warn, most) in [(3, 5), (2, 3), (9, 2)] {
        let mut said = submission("hi");
        (said.setup.limits.warn_failures, said.setup.limits.max_failures) = (warn, most);
        let mut talk = Talk::of(said);
        let mut shown = String::new();
        for nth in 1..=most {
            assert!(!shown.contains("done "), "{shown}");
            talk.all([
                call(&format!("a{nth}"), "look", json!({})),
                ends(EndReason::ToolUse),
                harmless(u64::from(nth)),
            ]);
            shown = talk.says(broke(u64::from(nth), "no such thing"));
            let warning = format!("failed {warn} times");
            assert_eq!(talk.results()[0].contains(&warning), nth == warn, "{nth}");
        }
        assert!(shown.ends_with("done error error"), "{shown}");
    }

    let mut talk = Talk::begin();
    let mut shown = String::new();
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
fn a_step_with_too_many_calls_ends_with_an_error_that_names_the_limit() {
    let look = |nth: usize| call(&format!("a{nth}"), "look", json!({}));
    for (calls, is_ended) in [(200, false), (201, true)] {
        let mut talk = Talk::begin();
        let shown: Vec<_> = (1..=calls).map(|nth| talk.says(look(nth))).collect();
        let last = shown.last().expect("there are calls");
        assert_eq!(last.contains("more than 200 calls in one step"), is_ended, "{last}");
        assert_eq!(last.ends_with("done error error"), is_ended, "{last}");
        let next = talk.says(ends(EndReason::ToolUse));
        assert_eq!(next.contains("look"), !is_ended, "none is carried out: {next}");
    }
}

#[test]
fn after_so_many_requests_the_user_is_asked_or_the_answer_ends() {
    for is_attended in [true, false] {
        let mut said = submission("hi");
        said.setup.limits.requests = 2;
        said.setup.asker = if is_attended { Asker::Here } else { Asker::Nobody };
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

/// A submission whose model costs a dollar for a thousand tokens, if it costs anything.
fn priced(is_known: bool, limits: AnswerLimits) -> Submission {
    let mut settings = crate::config::Settings::default();
    if is_known {
        let model = crate::config::Model {
            price_in: Some(1000.0),
            price_out: Some(1000.0),
            ..crate::config::Model::default()
        };
        settings.models.insert("m".to_owned(), model);
    }
    submission_with("hi", |it| {
        it.settings = settings.into();
        it.limits = limits;
    })
}

/// A request that costs so many tokens and calls a reader, whose result comes.
fn spends(talk: &mut Talk, nth: u64, tokens: u64) -> String {
    talk.all([
        call(&format!("a{nth}"), "look", json!({})),
        counts(tokens, 0),
        ends(EndReason::ToolUse),
        harmless(nth),
    ]);
    talk.says(ran(nth, &nth.to_string()))
}

#[test]
fn after_so_much_was_spent_the_user_is_asked_and_a_yes_is_for_as_much_again() {
    let limits = AnswerLimits {
        dollars: Some(1.0),
        ..AnswerLimits::default()
    };
    let mut talk = Talk::of(priced(true, limits));
    assert!(spends(&mut talk, 1, 600).contains("call m"));
    let asked = spends(&mut talk, 2, 700);
    assert!(asked.contains("$1.30") && asked.ends_with("~Go on? yes/no"), "{asked}");
    assert!(talk.says(answer("doc_003", "yes")).contains("call m"));
    assert!(spends(&mut talk, 3, 900).contains("call m"), "it counts anew");
    assert!(spends(&mut talk, 4, 100).ends_with("~Go on? yes/no"));
    assert!(talk.says(answer("doc_006", "no")).ends_with("done completed max_turns"));

    let mut alone = priced(true, limits);
    alone.setup.asker = Asker::Nobody;
    let mut talk = Talk::of(alone);
    assert!(spends(&mut talk, 1, 1000).ends_with("done completed max_turns"));
}

#[test]
fn a_conversation_has_a_limit_of_its_own() {
    let limits = AnswerLimits {
        dollars_in_all: Some(1.0),
        ..AnswerLimits::default()
    };
    let mut talk = Talk::of(priced(true, limits));
    talk.all([says("ok"), counts(1500, 0), ends(EndReason::Stop)]);
    // The next message is not sent before somebody says so.
    let asked = talk.says(Input::Submit(Box::new(priced(true, limits))));
    assert!(asked.contains("$1.50") && asked.ends_with("~Go on? yes/no"), "{asked}");
    assert!(talk.says(answer("doc_001", "yes")).contains("call m"));
    talk.all([says("ok"), counts(500, 0), ends(EndReason::Stop)]);
    assert!(
        talk.says(Input::Submit(Box::new(priced(true, limits))))
            .contains("call m")
    );
}

#[test]
fn a_limit_that_cannot_be_held_is_said_once() {
    let limits = AnswerLimits {
        dollars: Some(0.01),
        ..AnswerLimits::default()
    };
    let mut talk = Talk::of(priced(false, limits));
    talk.all([call("a1", "look", json!({})), counts(5000, 0)]);
    let said = talk.says(ends(EndReason::ToolUse));
    assert!(said.contains("price-unknown"), "{said}");
    talk.says(harmless(1));
    assert!(talk.says(ran(1, "x")).contains("call m"));
    assert!(!spends(&mut talk, 2, 5000).contains("price-unknown"));
    // Without a limit nobody needs to know.
    let mut talk = Talk::of(priced(false, AnswerLimits::default()));
    talk.all([says("ok"), counts(5000, 0)]);
    assert!(!talk.says(ends(EndReason::Stop)).contains("price-unknown"));
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
