//! What hooks say about a call: they make it stricter, and their yes lifts no refusal.

use pretty_assertions::assert_eq;

use super::*;
use crate::{
    agent::approval::Rule,
    extensions::{AllowedTool, ToolGroup},
};

/// What becomes of the command `git push`: `run`, `ask` or the reason why not.
fn fate(hook: HookVerdict, change: impl FnOnce(&mut Submission), tier: Tier) -> String {
    let mut said = submission("hi");
    said.policy.run = RunMode::Ask;
    change(&mut said);
    let mut turn = Turn::default();
    let mut effects = turn.step(Input::Submit(Box::new(said)), 1);
    for input in [
        call("a", "run", json!({ "command": "git push" })),
        ends(EndReason::ToolUse),
    ] {
        effects.extend(turn.step(input, 1));
    }
    let Input::Prepared {
        job,
        result: Ok(prepared),
    } = touching(1, command("git push"))
    else {
        unreachable!("it is prepared")
    };
    let prepared = Prepared { tier, hook, ..prepared };
    let effects = turn.step(
        Input::Prepared {
            job,
            result: Ok(prepared),
        },
        1,
    );
    if let Some(Effect::Run { arguments, .. }) = effects.iter().find(|it| matches!(it, Effect::Run { .. })) {
        return format!("run {}", arguments.text("command").unwrap_or_default());
    }
    let is_question =
        |it: &Effect| matches!(it, Effect::Append(Event::DocumentStart(start)) if start.kind == Kind::Clarification);
    if effects.iter().any(is_question) {
        return "ask".to_owned();
    }
    let results = turn.memory.history.messages.iter().rev().find_map(|it| match it {
        ModelMessage::Results(results) => results.first(),
        ModelMessage::User(_) | ModelMessage::Assistant(_) => None,
    });
    results.map_or_else(String::new, |it| it.text.clone())
}

fn says(decision: Decision, lifts_question: bool) -> HookVerdict {
    HookVerdict {
        decision: Some(decision),
        lifts_question,
        reason: "a hook says so".to_owned(),
        arguments: None,
    }
}

#[test]
fn a_hook_makes_a_call_stricter_and_its_yes_lifts_only_an_ordinary_question() {
    use Decision::{Allow, Ask, Deny};
    let rule = |it: &str| Rule::parse(it, None).expect("a rule");
    let free = |it: &mut Submission| it.policy.rules.allow.push(rule("Shell(git push)"));
    let none = |_: &mut Submission| {};
    let denied = |it: &mut Submission| it.policy.rules.deny.push(rule("Shell(git push)"));
    let asked = |it: &mut Submission| it.policy.rules.ask.push(rule("Shell(git push)"));
    let afar = |it: &mut Submission| it.setup.asker = Asker::Live;
    let forced = |it: &mut Submission| it.policy.run = RunMode::Force;
    let alone = |it: &mut Submission| it.setup.asker = Asker::Nobody;
    type Change<'a> = &'a dyn Fn(&mut Submission);
    let cases: [(&str, HookVerdict, Change<'_>, Tier, &str); 13] = [
        ("nothing", HookVerdict::default(), &none, Tier::Full, "ask"),
        (
            "nothing, a rule allows",
            HookVerdict::default(),
            &free,
            Tier::Full,
            "run git push",
        ),
        ("no", says(Deny, false), &free, Tier::Full, "a hook says so"),
        ("no, by force", says(Deny, false), &forced, Tier::Full, "a hook says so"),
        ("asks", says(Ask, false), &free, Tier::Full, "ask"),
        (
            "asks, and nobody is there",
            says(Ask, false),
            &|it| {
                free(it);
                alone(it);
            },
            Tier::Full,
            "nobody can give it",
        ),
        (
            "yes of the user's",
            says(Allow, true),
            &none,
            Tier::Full,
            "run git push",
        ),
        ("yes of a project's", says(Allow, false), &none, Tier::Full, "ask"),
        ("yes, a rule denies", says(Allow, true), &denied, Tier::Full, "forbids"),
        ("yes, without a sandbox", says(Allow, true), &none, Tier::None, "ask"),
        ("yes, a rule asks", says(Allow, true), &asked, Tier::Full, "ask"),
        ("yes, to a client", says(Allow, true), &afar, Tier::Full, "ask"),
        (
            "changed",
            HookVerdict {
                arguments: Some(Arguments(object(json!({ "command": "git pull" })))),
                ..HookVerdict::default()
            },
            &free,
            Tier::Full,
            "run git pull",
        ),
    ];
    for (name, hook, change, tier, want) in cases {
        let fate = fate(hook, change, tier);
        assert!(fate.contains(want), "{name}: {fate}");
    }
}

#[test]
fn a_custom_mode_refuses_what_it_does_not_allow_and_is_named_in_the_answer() {
    let mode = CustomMode {
        name: "look".to_owned(),
        about: String::new(),
        base: Mode::Agent,
        tools: Some(vec![AllowedTool::Group(ToolGroup::Reads)]),
        without: Vec::new(),
        model: None,
        effort: None,
        prompt: String::new(),
        path: String::new(),
    };
    let said = submission_with("hi", |it| it.custom_mode = Some(Arc::new(mode)));
    let mut turn = Turn::default();
    let mut effects = turn.step(Input::Submit(Box::new(said)), 1);
    for input in [
        call("a", "run", json!({ "command": "ls" })),
        call("b", "look", json!({})),
        ends(EndReason::ToolUse),
    ] {
        effects.extend(turn.step(input, 1));
    }
    let start = effects.iter().find_map(|it| match it {
        Effect::Append(Event::ResponseStart(start)) => Some(start),
        _ => None,
    });
    let start = start.expect("it began");
    assert_eq!(start.mode, Some(Mode::Agent));
    assert_eq!(start.extra.get("metadata"), Some(&json!({ "customMode": "look" })));
    let prepared: Vec<&str> = effects
        .iter()
        .filter_map(|it| match it {
            Effect::Prepare { tool, .. } => Some(tool.name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(prepared, ["look"]);
}

#[test]
fn a_message_that_a_hook_blocks_ends_its_turn_and_is_not_told() {
    let mut said = submission("a secret");
    said.blocked = Some("no secrets".to_owned());
    let mut turn = Turn::default();
    let effects = turn.step(Input::Submit(Box::new(said)), 1);
    assert!(!turn.is_running() && turn.memory.history.messages.is_empty());
    let shown = show(&effects);
    assert!(
        shown.contains("no secrets") && !shown.contains("ask the model"),
        "{shown}"
    );
    assert!(effects.iter().all(|it| !matches!(it, Effect::CallModel { .. })));
}
