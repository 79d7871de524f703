//! What opens over a conversation, in German and where there is little room: nothing of it is left in English, and the footer is
//! cut between hints, never within one.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    super::{
        actions,
        msg::{EffectOutcome, Msg},
        test_app::*,
    },
    finding::{conversation, shelf},
    reviewing::changed,
    rewinding::{branched, rewinding},
};
use crate::{
    config::{self, KEYS, McpServer},
    locale,
    protocol::{
        ContextName, ContextNote, ContextPart, Event, Mechanism, Message, ModelOffer, ModelOffers, NotOffered,
        Permissions, Reply, RuleTrigger, Sandbox, SandboxLayer, SandboxNote,
    },
};

const WIDTHS: [u16; 6] = [20, 40, 60, 80, 120, 300];

/// A place of the screen, and how one comes there.
type Place = (&'static str, fn(u16) -> TestApp);

const PLACES: &[Place] = &[
    ("the composer", |width| TestApp::new(width, 24)),
    ("the composer at work", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.events([Event::UserMessage(Message::user("go"))]);
        desk.keys("later<enter>");
        desk
    }),
    ("the transcript", |width| after(conversation(width, 24), "<tab>")),
    ("keys", |width| did(TestApp::new(width, 400), "keys")),
    ("problems", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.app.preferences.problems = vec!["config.toml:3: x".to_owned()];
        did(desk, "problems")
    }),
    ("context", |width| {
        replied(conversation(width, 24), "context", Reply::Context(parts_of_context()))
    }),
    ("sandbox", |width| {
        replied(TestApp::new(width, 60), "sandbox", Reply::Sandbox(walls()))
    }),
    ("permissions", |width| {
        let rules = |text: &str| vec![format!("Shell({text})"), "Write(docs/**)".to_owned()];
        let mut desk = TestApp::new(width, 60);
        for run in ["ask", "list", "sandbox", "force"] {
            desk = replied(
                desk,
                "permissions",
                Reply::Permissions(Permissions {
                    run: run.to_owned(),
                    deny: rules("rm"),
                    ask: rules("git push"),
                    allow: rules("cargo test"),
                    session: Vec::new(),
                    has_invalid_rule: run == "ask",
                }),
            );
        }
        desk
    }),
    ("cost", |width| did(conversation(width, 24), "conversation.cost")),
    ("palette", |width| did(TestApp::new(width, 24), "palette")),
    ("palette, looked through", |width| {
        after(did(TestApp::new(width, 24), "palette"), "<pgdn><pgdn><pgdn>")
    }),
    ("modes", |width| did(TestApp::new(width, 24), "mode")),
    ("models", |width| {
        let model = ModelOffer {
            id: "one".to_owned(),
            name: "one".to_owned(),
            provider: "OpenAI".to_owned(),
            is_own: true,
            window: Some(200_000),
            price: Some((2500, 10_000)),
            has_effort: true,
        };
        let offers = ModelOffers {
            models: vec![model],
            problems: Vec::new(),
        };
        replied(TestApp::new(width, 24), "model", Reply::ModelOffers(offers))
    }),
    ("efforts", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.app.conversation.about.hears = true;
        did(desk, "effort")
    }),
    ("themes", |width| did(TestApp::new(width, 24), "theme")),
    ("facets", |width| did(conversation(width, 24), "filter")),
    ("forms of a copy", |width| did(conversation(width, 24), "copy.as")),
    ("a chip", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.paste(&"long\n".repeat(40));
        did(desk, "unfold")
    }),
    ("what was pasted", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.paste(&"long\n".repeat(40));
        after(did(desk, "unfold"), "<enter>")
    }),
    ("history", |width| {
        let outcome = EffectOutcome::History {
            texts: vec!["x".to_owned()],
            draft: Some(0),
        };
        told(TestApp::new(width, 24), outcome)
    }),
    ("nothing fits", |width| {
        after(did(TestApp::new(width, 24), "palette"), "qqqqq")
    }),
    ("commands", |width| after(TestApp::new(width, 24), "/")),
    ("what stands behind a command", |width| {
        after(TestApp::new(width, 24), "/sandbox ")
    }),
    ("review", |width| after(changed(width), "<alt+r>")),
    ("rewind", rewinding),
    ("branches", |width| did(branched(width), "branches")),
    ("branches, the other one", |width| {
        after(did(branched(width), "branches"), "<up>")
    }),
    ("outline", |width| did(conversation(width, 24), "outline")),
    ("outline of nothing", |width| {
        after(did(conversation(width, 24), "outline"), "qqq")
    }),
    ("conversations", shelf),
    ("conversations, one to be removed", |width| {
        after(shelf(width), "<ctrl+d>")
    }),
    ("no conversation", |width| after(shelf(width), "qqq")),
    ("inspector", |width| did(conversation(width, 24), "inspect")),
    ("messages that wait", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.events([Event::UserMessage(Message::user("go"))]);
        desk.keys("later<enter>");
        did(desk, "queued")
    }),
    ("a search", |width| after(conversation(width, 24), "<tab>/cart")),
    ("a form", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.events([Event::UserMessage(Message::user("x"))]);
        desk.events([start(
            "a",
            "clarification",
            json!({ "questions": [{ "id": "q", "text": "Y?", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }] }),
        )]);
        desk
    }),
    ("an approval", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.events([Event::UserMessage(Message::user("x"))]);
        desk.events([start(
            "a",
            "clarification",
            json!({ "kind": "approval", "subject": { "type": "terminal_command", "metadata": { "command": "git push" } },
                "questions": [{ "id": "q", "text": "Y?", "options": [
                    { "id": "allow_once", "label": "x" }, { "id": "allow_always", "label": "y" }, { "id": "reject_once", "label": "z" }
                ] }] }),
        )]);
        desk
    }),
    ("a plan", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.events([Event::UserMessage(Message::user("x"))]);
        desk.events(document(
            "a",
            "plan",
            Some("y"),
            json!({ "title": "z", "todos": [{ "id": "1", "content": "w", "status": "pending" }] }),
        ));
        after(desk, "<tab>")
    }),
    ("a todo", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.events([Event::UserMessage(Message::user("x"))]);
        desk.events(document(
            "a",
            "plan",
            Some("y"),
            json!({ "title": "z", "todos": [{ "id": "1", "content": "w", "status": "pending" }] }),
        ));
        did(after(desk, "<tab>"), "todo.next")
    }),
    ("a new todo", |width| {
        let mut desk = TestApp::new(width, 24);
        desk.events([Event::UserMessage(Message::user("x"))]);
        desk.events(document("a", "plan", Some("y"), json!({ "title": "z", "todos": [] })));
        did(after(desk, "<tab>"), "todo.insert")
    }),
];

fn after(mut desk: TestApp, keys: &str) -> TestApp {
    desk.keys(keys);
    desk
}

fn did(mut desk: TestApp, name: &str) -> TestApp {
    let action = actions::find(name).unwrap_or_else(|| panic!("there is no action {name}"));
    let effects = action.go(&mut desk.app, "");
    desk.front.effects.extend(effects);
    desk.app.viewport.bars = None;
    desk.draw();
    desk
}

fn parts_of_context() -> Vec<ContextPart> {
    let rule = |at: usize| ContextName::Rule(format!("{at}.mdc"));
    let tool = |at: usize| ContextName::Tool(format!("t{at}"));
    let awaits = [
        RuleTrigger::Nothing,
        RuleTrigger::Files,
        RuleTrigger::Model,
        RuleTrigger::User,
    ];
    let missing = [
        NotOffered::SwitchedOff,
        NotOffered::ModelCallsNone,
        NotOffered::NoSearchService,
        NotOffered::NoChecker,
        NotOffered::Untrusted,
        NotOffered::NoServer,
        NotOffered::NoSkill,
        NotOffered::EditStyle,
        NotOffered::OtherModels,
        NotOffered::SmallWindow,
    ];
    let mut parts = vec![
        (
            ContextName::SystemPrompt,
            vec![ContextNote::UserAddition, ContextNote::UserReplacements(2)],
        ),
        (rule(8), vec![ContextNote::Untrusted]),
        (rule(9), vec![ContextNote::DescriptionOnly]),
        (ContextName::ServerInstructions, Vec::new()),
        (ContextName::Tools, vec![ContextNote::ToolCount(2)]),
        (ContextName::Tag("x"), Vec::new()),
        (ContextName::Messages, Vec::new()),
        (ContextName::Answers, Vec::new()),
        (ContextName::Results, Vec::new()),
        (ContextName::Images, vec![ContextNote::Estimate]),
    ];
    parts.extend((0..).map(rule).zip(awaits.map(|it| vec![ContextNote::NotSent(it)])));
    parts.extend((0..).map(tool).zip(missing.map(|it| vec![ContextNote::NotOffered(it)])));
    for price in [None, Some("m".to_owned())] {
        let notes = [
            ContextNote::Window(9),
            ContextNote::CountedByServer(2),
            ContextNote::Unpriced(price),
        ];
        parts.push((ContextName::All, notes.to_vec()));
    }
    let part = |(name, notes)| ContextPart {
        name,
        tokens: 1_200,
        notes,
    };
    parts.into_iter().map(part).collect()
}

fn walls() -> Sandbox {
    let mut walls = Vec::new();
    for (means, names) in [
        (
            Mechanism::Kernel,
            &["files", "processes", "network", "capabilities", "system calls"][..],
        ),
        (Mechanism::Seatbelt, &["files", "processes", "network"]),
        (Mechanism::Landlock(0), &["landlock"]),
        (Mechanism::Landlock(2), &["landlock"]),
        (Mechanism::Landlock(7), &["landlock"]),
        (Mechanism::Needless, &["bubblewrap"]),
    ] {
        walls.extend(names.iter().map(|name| SandboxLayer {
            name: (*name).to_owned(),
            is_active: true,
            mechanism: Some(means),
            ..SandboxLayer::default()
        }));
    }
    Sandbox {
        layers: walls,
        notes: vec![
            SandboxNote::NotSaved("x".to_owned()),
            SandboxNote::GuardTripped,
            SandboxNote::GuardOn,
            SandboxNote::GuardOff,
            SandboxNote::GuardNotNeeded,
        ],
    }
}

/// What an action asks, replied to.
fn replied(desk: TestApp, action: &str, reply: Reply) -> TestApp {
    let mut desk = did(desk, action);
    desk.reply(reply);
    desk
}

fn told(mut desk: TestApp, outcome: EffectOutcome) -> TestApp {
    desk.take(Msg::Done(outcome));
    desk
}

/// The hints below the draft or the layer, without what is said at the right.
fn footer(desk: &mut TestApp) -> String {
    desk.app.toast = None;
    desk.app.viewport.bars = None;
    desk.draw();
    desk.picture().lines().last().unwrap_or_default().trim().to_owned()
}

/// The keys that lead to the help and back.
const WAYS: [&str; 3] = ["f1", "?", "esc"];

#[test]
fn every_setting_is_described_in_german() {
    let english = format!("{}{}", locale::LANGUAGES[0].text, config::messages());
    let ids = |text: &str| -> BTreeSet<String> {
        let ids = text
            .lines()
            .filter_map(|it| it.split_once(" = ")?.0.strip_prefix("setting-"));
        ids.map(str::to_owned).collect()
    };
    let german = locale::LANGUAGES
        .iter()
        .find(|it| it.tag == "de")
        .expect("it is compiled in");
    assert_eq!(ids(german.text), ids(&english));
    // What a translator starts from says the same as the fields do.
    let (read, faults) = locale::Catalogue::read("en", english.into());
    assert_eq!(faults, []);
    locale::within("de", || {
        let mut desk = TestApp::new(200, 400);
        desk.app
            .preferences
            .settings
            .mcp
            .insert("x".to_owned(), McpServer::default());
        let mut desk = did(desk, "config");
        for key in KEYS.iter() {
            assert_eq!(read.plain(&key.text_id()), Some(key.about));
            let own = locale::text_or(&key.text_id(), key.about);
            assert!(
                own != key.about && !own.contains(['{', '}']) || key.about.contains('{'),
                "{own}"
            );
            let name = key.path.replace('*', "x");
            if key.path.contains('*') && !name.starts_with("mcp.") {
                continue;
            }
            desk.keys(&name);
            let picture = desk.picture();
            let words = own.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
            assert!(picture.contains(&words), "{name}: {words}\n{picture}");
            assert!(!picture.contains(key.about), "{picture}");
            desk.keys("<ctrl+u>");
        }
    });
}

#[test]
fn everything_opens_at_any_width_and_hints_are_cut_between_each_other() {
    for (name, open) in PLACES {
        let whole = locale::within("de", || footer(&mut open(600)));
        assert!(!whole.is_empty(), "{name}");
        let hints: Vec<&str> = whole.split("   ").collect();
        for width in WIDTHS {
            let here = locale::within("de", || footer(&mut open(width)));
            let mut rest = hints.iter();
            // The help and Esc lose their words before they go.
            let is_of = |hint: &str, it: &str| hint == it || WAYS.contains(&it) && hint.split(' ').next() == Some(it);
            let is_cut_between = here.is_empty() || here.split("   ").all(|it| rest.any(|hint| is_of(hint, it)));
            assert!(is_cut_between, "{name} at {width}: {here:?} of {whole:?}");
        }
        // The way to the help stays, and the way out of what is open.
        let narrow = locale::within("de", || footer(&mut open(40)));
        let has = |hints: &str, key: &str| hints.split("   ").any(|it| it.split(' ').next() == Some(key));
        let has_way = |key: &&str| !has(&whole, key) || has(&narrow, key);
        assert!(WAYS.iter().all(has_way), "{name}: {narrow}");
        assert!(whole.contains("f1 ") || whole.contains("? "), "{name}: {whole}");
    }
}

#[test]
fn nothing_that_opens_says_in_english_what_german_says() {
    // One word may be a name; what is said in several is speech.
    let english: Vec<_> = locale::said_otherwise("de")
        .into_iter()
        .filter(|it| it.contains(' '))
        .collect();
    assert!(english.len() > 300, "{}", english.len());
    for (name, open) in PLACES {
        for width in [80, 200] {
            let desk = locale::within("de", || open(width));
            let left: Vec<_> = english.iter().filter(|it| desk.shows(it)).collect();
            assert!(left.is_empty(), "{name} at {width} says {left:?}\n{}", desk.picture());
        }
        // The test sees: in English it is all there.
        let desk = open(200);
        let is_said = english.iter().any(|it| desk.shows(it));
        assert!(is_said, "{name} says nothing of it\n{}", desk.picture());
    }
}

#[test]
fn the_palette_finds_by_words_of_the_language_and_by_english_names() {
    locale::within("de", || {
        for typed in ["kopieren als", "copy as", "copy.as"] {
            let desk = after(did(TestApp::new(100, 24), "palette"), typed);
            assert!(desk.shows("kopieren als  "), "{typed}\n{}", desk.picture());
        }
        for typed in ["Gliederung", "outline"] {
            let desk = after(did(TestApp::new(100, 24), "palette"), typed);
            assert!(desk.shows("/outline"), "{typed}\n{}", desk.picture());
        }
    });
    let desk = after(did(TestApp::new(100, 24), "palette"), "kopieren als");
    assert!(desk.shows("no matches"), "{}", desk.picture());
}
