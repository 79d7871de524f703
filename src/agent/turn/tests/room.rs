//! Room is made before the window is full, after a server has refused, and when the user wants it; and never twice for nothing.

use pretty_assertions::assert_eq;

use super::*;
use crate::{
    agent::history::{self, message_history::MessageHistory},
    journal::Log,
    protocol::{CompactionScope, Position},
};

/// The messages of the user and the model's words, as they are read again from what the log says.
fn reread(effects: &[Effect]) -> MessageHistory {
    let log = Log::new();
    for effect in effects {
        if let Effect::Append(event) = effect {
            log.append(0, event.clone());
        }
    }
    history::with_calls(&log.after(Position(0)))
}

/// A conversation of turns whose answers read so many bytes each, with a window.
fn long(window: Option<u64>, turns: u32, bytes: usize) -> Turn {
    told(window, turns, bytes).0
}

/// The same, with all that came of it. Where the results are too short to be dropped, the answers are long.
fn told(window: Option<u64>, turns: u32, bytes: usize) -> (Turn, Vec<Effect>) {
    let mut turn = Turn::default();
    let mut effects = Vec::new();
    turn.memory.window.tokens = window;
    for nth in 1..=turns {
        let said = submission_with(&format!("question {nth}"), |it| it.turn = ProtocolTurn(nth));
        let id = format!("t{nth}");
        for input in [
            Input::Submit(Box::new(said)),
            call(&id, "look", json!({ "file_path": format!("{nth}.rs") })),
            ends(EndReason::ToolUse),
            harmless(1),
            ran(1, &format!("{nth}{}", "x".repeat(bytes))),
            says(&format!(
                "answer {nth} {}",
                "w".repeat(3300_usize.saturating_sub(bytes))
            )),
            ends(EndReason::Stop),
        ] {
            effects.extend(turn.step(input, 0));
        }
        assert!(!turn.is_running());
    }
    (turn, effects)
}

/// One line for each message: who, and how it begins.
fn gist(told: &MessageHistory) -> Vec<String> {
    let short = |text: &str| {
        text.chars()
            .take(44)
            .collect::<String>()
            .replace('\n', " ")
            .trim_end()
            .to_owned()
    };
    told.messages
        .iter()
        .map(|it| match it {
            ModelMessage::User(parts) => match parts.as_slice() {
                [Part::Text(text)] => format!("user {}", short(text)),
                other => format!("user {other:?}"),
            },
            ModelMessage::Assistant(said) => match said.as_slice() {
                [Said::Text(text)] => format!("said {}", short(text)),
                [Said::Call(call)] => format!("call {}", call.id),
                other => format!("said {other:?}"),
            },
            ModelMessage::Results(results) => format!("result {}", short(&results[0].text)),
        })
        .collect()
}

fn next(nth: u32) -> Input {
    let submission = submission_with(&format!("question {nth}"), |it| it.turn = ProtocolTurn(nth));
    Input::Submit(Box::new(submission))
}

fn asks_to(how: CompactionScope, nth: u32) -> Input {
    let submission = submission_with("/compact", |it| {
        it.purpose = Purpose::Compaction(how);
        it.turn = ProtocolTurn(nth);
    });
    Input::Submit(Box::new(submission))
}

fn summary(keep: &str) -> CompactionScope {
    CompactionScope::Summary { keep: keep.to_owned() }
}

/// The records of compactions in the documents.
fn marks(effects: &[Effect]) -> Vec<Value> {
    let ends = effects.iter().filter_map(|it| match it {
        Effect::Append(Event::DocumentEnd { metadata, .. }) => metadata.get("compaction").cloned(),
        _ => None,
    });
    ends.collect()
}

#[test]
fn nothing_happens_while_there_is_room() {
    let mut turn = long(Some(100_000), 6, 3300);
    let effects = turn.step(next(7), 0);
    assert_eq!(show(&effects), r#"user "question 7" | call m with 25"#);
    // And where nobody knows the window, it is the server that says so.
    let mut turn = long(None, 6, 33_000);
    assert!(show(&turn.step(next(7), 0)).ends_with("call m with 25"));
}

#[test]
fn old_results_go_first_and_the_last_three_turns_stay() {
    // About 1,000 tokens a turn.
    let mut turn = long(Some(12_000), 7, 3300);
    turn.memory.history.estimated(9_000);
    turn.memory.window.tokens = Some(10_000);
    let effects = turn.step(next(8), 0);
    assert!(
        show(&effects).contains("compact_conversation") && show(&effects).ends_with("call m with 29"),
        "{}",
        show(&effects)
    );
    let marks = marks(&effects);
    assert_eq!(
        (&marks[0]["way"], &marks[0]["keptTurns"], &marks[0]["cause"]),
        (&json!("results"), &json!(3), &json!("full"))
    );
    assert!(marks[0]["afterTokens"].as_u64() < Some(6_000), "{marks:?}");
    let results: Vec<String> = gist(&turn.memory.history)
        .into_iter()
        .filter(|it| it.starts_with("result"))
        .collect();
    let dropped = r#"result [result dropped: look "1.rs", 1 line; call a"#;
    assert_eq!(results[0], dropped);
    let whole = results.iter().filter(|it| !it.contains("dropped")).count();
    assert_eq!(whole, 2, "{results:?}");
}

#[test]
fn a_summary_stands_for_what_was_said_before() {
    let mut turn = long(None, 8, 300);
    let before = turn.memory.history.tokens(0);
    turn.memory.window.tokens = Some(before + 100);
    // What is left would be too much without a summary: the results are too short to be worth dropping.
    let effects = turn.step(next(9), 0);
    assert!(show(&effects).ends_with("summarise 24 attempt 0"), "{}", show(&effects));
    turn.step(says("They talked about files."), 5);
    let effects = turn.step(ends(EndReason::Stop), 7);
    assert!(show(&effects).contains("forgot | call m with"), "{}", show(&effects));
    let gist = gist(&turn.memory.history);
    assert_eq!(gist[0], "user <conversation_summary> They talked about fil");
    assert_eq!(gist[1], "user question 7");
    assert_eq!(gist.last().map(String::as_str), Some("user question 9"));
    // What is sent from then on is only added to.
    let sent = asked(&effects).messages.clone();
    turn.step(says("fine"), 8);
    turn.step(ends(EndReason::Stop), 9);
    turn.memory.window.tokens = None;
    let later = turn.step(next(10), 10);
    assert_eq!(asked(&later).messages[..sent.len()], sent[..]);
}

#[test]
fn within_one_long_turn_its_message_stays_and_so_do_the_last_steps() {
    let mut talk = Talk::begin();
    talk.turn.memory.window.tokens = Some(1_000_000);
    for nth in 1..=9 {
        talk.all([
            says(&format!("step {nth} {}", "w".repeat(3300))),
            call(
                &format!("a{nth}"),
                "look",
                json!({ "n": nth, "file_path": nth.to_string() }),
            ),
            ends(EndReason::ToolUse),
            harmless(nth),
            ran(nth, &nth.to_string()),
        ]);
    }
    talk.turn.memory.window.tokens = Some(talk.turn.memory.history.tokens(0) + 1500);
    talk.all([
        says("step 10"),
        call("a10", "look", json!({ "file_path": "10" })),
        ends(EndReason::ToolUse),
        harmless(10),
    ]);
    let shown = talk.says(ran(10, "10"));
    assert!(shown.contains("summarise"), "{shown}");
    talk.says(says("Nine steps were made."));
    let shown = talk.says(ends(EndReason::Stop));
    assert!(shown.contains("forgot | call m with"), "{shown}");
    let gist: Vec<String> = talk
        .turn
        .memory
        .history
        .messages
        .iter()
        .map(|it| format!("{it:?}"))
        .collect();
    assert!(gist[0].contains("<conversation_summary>"), "{}", gist[0]);
    assert_eq!(talk.turn.memory.history.messages[1], ModelMessage::user("hi"));
    assert!(matches!(
        talk.turn.memory.history.messages[2],
        ModelMessage::Assistant(_)
    ));
    assert!(gist.last().is_some_and(|it| it.contains("a10")), "{gist:?}");
    let mark = &marks(&talk.effects)[0];
    assert!(mark["behind"].is_string(), "{mark}");
    assert_eq!(mark["keptTurns"], 1);
}

#[test]
fn what_a_server_refuses_is_made_shorter_and_sent_once_more() {
    let mut turn = long(None, 6, 3300);
    turn.step(next(7), 0);
    let shown = show(&turn.step(fails(FailureKind::TooLong), 1));
    assert!(
        shown.ends_with("call m with 25") && shown.contains("compact_conversation"),
        "{shown}"
    );
    // It is refused again: that is the end, and it is said what takes the room.
    let effects = turn.step(fails(FailureKind::TooLong), 2);
    let shown = show(&effects);
    assert!(
        shown.contains("cannot be made shorter: ") && shown.ends_with("done error error"),
        "{shown}"
    );
    assert!(!turn.is_running());
    // The next message makes room before it is sent.
    assert!(turn.memory.window.refused.is_some());
}

#[test]
fn one_thing_that_is_too_big_is_named_with_what_one_can_do() {
    let mut talk = Talk::begin();
    talk.turn.memory.window.tokens = Some(20_000);
    talk.all([
        call("a1", "look", json!({ "file_path": "big.log" })),
        counts(900, 100),
        ends(EndReason::ToolUse),
        harmless(1),
    ]);
    let shown = talk.says(ran(1, &"x".repeat(100_000)));
    assert!(
        shown.contains(r#"cannot be made shorter: the result of look \"big.log\" (1.1) takes "#)
            && shown.contains("tokens of 20k")
            && shown.ends_with("done error error"),
        "{shown}"
    );
    let details = talk.effects.iter().find_map(|it| match it {
        Effect::Append(Event::DocumentEnd { metadata, .. }) => metadata.get("details")?.as_str(),
        _ => None,
    });
    let details = details.expect("an error says what to do");
    for offer in ["/drop 1.1", "/rewind 1", "/new"] {
        assert!(details.contains(offer), "{details}");
    }
    // It is dropped, and then it fits.
    let shown = talk.says(asks_to(
        CompactionScope::DropResult(Address {
            turn: ProtocolTurn(1),
            number: 1,
        }),
        2,
    ));
    assert!(
        shown.ends_with("done completed stop") && shown.contains(r#"= "success""#),
        "{shown}"
    );
    let mark = &marks(&talk.effects)[0];
    assert_eq!((&mark["way"], &mark["calls"]), (&json!("single"), &json!(["a1"])));
    let shown = talk.says(next(3));
    assert!(shown.contains("call m with"), "{shown}");
}

#[test]
fn a_summary_that_is_no_shorter_is_not_used() {
    let mut turn = Turn::default();
    for input in [submit("hi"), says("ok"), ends(EndReason::Stop)] {
        turn.step(input, 0);
    }
    let before = turn.memory.history.clone();
    turn.step(asks_to(summary(""), 2), 0);
    turn.step(says(&"word ".repeat(2_000)), 1);
    let effects = turn.step(ends(EndReason::Stop), 2);
    let shown = show(&effects);
    assert!(
        shown.contains("a summary would save nothing") && shown.ends_with("done completed stop"),
        "{shown}"
    );
    assert_eq!((marks(&effects), &turn.memory.history), (Vec::new(), &before));
}

#[test]
fn a_summary_that_helps_little_ends_no_answer_that_still_fits() {
    let mut turn = long(None, 8, 300);
    let tokens = turn.memory.history.tokens(0);
    turn.memory.window.tokens = Some(tokens + 100);
    turn.step(next(9), 0);
    // Within what a summary may have, and with all that is still to be done no shorter than what it stands for.
    let todo = |at: usize| crate::transcript::Todo {
        id: format!("t{at}"),
        content: "word ".repeat(60),
        status: crate::protocol::TodoStatus::Pending,
        dependencies: Vec::new(),
        documents: Vec::new(),
    };
    turn.memory.todos.list = (0..150).map(todo).collect();
    turn.step(says("In short."), 1);
    let shown = show(&turn.step(ends(EndReason::Stop), 2));
    assert!(
        shown.contains("a summary would save nothing") && shown.ends_with("call m with 33"),
        "{shown}"
    );
    assert!(turn.memory.window.no_compaction_below > tokens);
    // Once it could be made, it is looked at the window alone.
    turn.memory.shortened(10);
    assert_eq!(turn.memory.window.no_compaction_below, 0);
}

#[test]
fn without_a_summary_it_goes_on_while_there_is_room() {
    let mut turn = long(None, 8, 300);
    turn.memory.window.tokens = Some(turn.memory.history.tokens(0) + 100);
    turn.step(next(9), 0);
    let shown = show(&turn.step(fails(FailureKind::Unreachable), 1));
    assert_eq!(shown, "summarise 24 attempt 1");
    let shown = show(&turn.step(fails(FailureKind::Key), 2));
    assert!(
        shown.contains(r#"= "error""#) && shown.ends_with("call m with 33"),
        "{shown}"
    );
    // And not at every step.
    turn.step(call("z", "look", json!({})), 3);
    turn.step(ends(EndReason::ToolUse), 4);
    turn.step(harmless(1), 5);
    assert!(show(&turn.step(ran(1, "x"), 6)).ends_with("call m with 35"));
}

#[test]
fn the_user_says_when_and_what_to_keep() {
    let mut turn = long(None, 3, 33_000);
    let effects = turn.step(asks_to(summary("the names"), 4), 0);
    assert!(show(&effects).ends_with("summarise 12 attempt 0"), "{}", show(&effects));
    let brief = effects.iter().find_map(|it| match it {
        Effect::Summarise { brief, .. } => Some(brief.clone()),
        _ => None,
    });
    assert_eq!(brief.map(|it| it.keep).as_deref(), Some("the names"));
    let Some(Effect::Append(Event::UserMessage(message))) = effects.first() else {
        panic!("{effects:?}")
    };
    assert!(message.extra.contains_key(ASIDE), "no model hears of it");
    turn.step(says("All of it, in short."), 1);
    let effects = turn.step(ends(EndReason::Stop), 2);
    assert!(show(&effects).ends_with("done completed stop"), "{}", show(&effects));
    assert_eq!(
        gist(&turn.memory.history),
        ["user <conversation_summary> All of it, in short."]
    );
    let done = effects.iter().find_map(|it| match it {
        Effect::Append(Event::Done(done)) => Some(done.extra_usage.clone()),
        _ => None,
    });
    assert!(done.is_some_and(|it| it["contextTokens"].as_u64() < Some(1_000)));
    assert!(show(&turn.step(next(5), 3)).ends_with("call m with 2"));
}

#[test]
fn stopping_it_leaves_everything_as_it_was() {
    let mut turn = long(None, 3, 3300);
    let before = turn.memory.history.clone();
    turn.step(asks_to(summary(""), 4), 0);
    turn.step(says("All of"), 1);
    let shown = show(&turn.step(Input::Cancel, 2));
    assert!(
        shown.contains("stop") && shown.ends_with("done completed cancelled"),
        "{shown}"
    );
    assert_eq!(turn.memory.history, before);
    let mut nothing = Turn::default();
    let shown = show(&nothing.step(asks_to(summary(""), 1), 0));
    assert!(
        shown.contains("NOTHING_TO_COMPACT") && shown.ends_with("done completed stop"),
        "{shown}"
    );
}

#[test]
fn todos_that_are_open_are_in_every_summary() {
    let mut turn = long(None, 3, 3300);
    let todo = json!({ "todos": [{ "id": "a", "content": "write the test", "status": "pending" }] });
    turn.memory.edited(todo.as_object().expect("an object"));
    turn.step(asks_to(summary(""), 4), 0);
    turn.step(says("In short."), 1);
    turn.step(ends(EndReason::Stop), 2);
    let text = format!("{:?}", turn.memory.history.messages[0]);
    assert!(text.contains("write the test"), "{text}");
}

#[test]
fn a_conversation_that_is_read_again_is_as_short_as_it_was() {
    // Old results, a summary before the last turns, one result, and a summary that the user wanted.
    let old = |turn: &mut Turn| {
        turn.memory.history.estimated(9_000);
        turn.memory.window.tokens = Some(10_000);
        vec![next(8), says("fine"), ends(EndReason::Stop)]
    };
    let full = |turn: &mut Turn| {
        turn.memory.window.tokens = Some(turn.memory.history.tokens(0) + 100);
        vec![
            next(8),
            says("In short."),
            ends(EndReason::Stop),
            says("fine"),
            ends(EndReason::Stop),
        ]
    };
    let single = |_: &mut Turn| {
        let place = Address {
            turn: ProtocolTurn(2),
            number: 1,
        };
        vec![asks_to(CompactionScope::DropResult(place), 8)]
    };
    let wished = |_: &mut Turn| vec![asks_to(summary(""), 8), says("In short."), ends(EndReason::Stop)];
    type Way = fn(&mut Turn) -> Vec<Input>;
    let ways: [(&str, usize, Way); 4] = [
        ("old results", 3300, old),
        ("a summary", 300, full),
        ("one result", 3300, single),
        ("what the user wants", 3300, wished),
    ];
    for (name, bytes, way) in ways {
        let (mut turn, mut effects) = told(None, 7, bytes);
        for input in way(&mut turn) {
            effects.extend(turn.step(input, 0));
        }
        turn.memory.window.tokens = None;
        let again = reread(&effects);
        assert_eq!(gist(&again), gist(&turn.memory.history), "{name}");
        assert_eq!(
            again.borders.iter().map(|it| (it.at, it.turn)).collect::<Vec<_>>(),
            turn.memory
                .history
                .borders
                .iter()
                .filter(|it| it.behind.is_none())
                .map(|it| (it.at, it.turn))
                .collect::<Vec<_>>(),
            "{name}"
        );
        // And before it, on another branch, it is as long as it was.
        let before = Effect::Append(Event::Branch(crate::protocol::Branch {
            after: ProtocolTurn(7),
            ..Default::default()
        }));
        effects.push(before);
        assert_eq!(
            reread(&effects).messages,
            reread(&told(None, 7, bytes).1).messages,
            "{name}"
        );
    }
}

#[test]
fn a_cut_within_a_turn_is_read_again_at_the_same_place() {
    let mut turn = Turn::default();
    let mut effects = turn.step(submit("hi"), 0);
    let all = |turn: &mut Turn, inputs: Vec<Input>, effects: &mut Vec<Effect>| {
        for input in inputs {
            effects.extend(turn.step(input, 0));
        }
    };
    turn.memory.window.tokens = Some(1_000_000);
    for nth in 1..=8 {
        // Calls without words between them: only what was asked when tells one step from the next.
        let id = format!("a{nth}");
        let arguments = json!({ "n": nth, "file_path": "w".repeat(2000) });
        let step = vec![
            call(&id, "look", arguments),
            ends(EndReason::ToolUse),
            harmless(nth),
            ran(nth, "ok"),
        ];
        if nth == 8 {
            turn.memory.window.tokens = Some(turn.memory.history.tokens(0) + 600);
        }
        all(&mut turn, step, &mut effects);
    }
    let summed = vec![
        says("They looked."),
        ends(EndReason::Stop),
        says("fine"),
        ends(EndReason::Stop),
    ];
    all(&mut turn, summed, &mut effects);
    assert!(!turn.is_running());
    let (live, again) = (&turn.memory.history.messages, reread(&effects).messages);
    assert!(format!("{:?}", live[0]).contains("They looked."), "{live:?}");
    assert_eq!(live[..2], again[..2]);
    let calls = |messages: &[ModelMessage]| -> Vec<String> {
        let said = messages.iter().filter_map(|it| match it {
            ModelMessage::Assistant(said) => Some(said),
            _ => None,
        });
        let calls = said.flatten().filter_map(|it| match it {
            Said::Call(call) => Some(call.id.clone()),
            _ => None,
        });
        calls.collect()
    };
    assert_eq!(calls(live), calls(&again));
}
