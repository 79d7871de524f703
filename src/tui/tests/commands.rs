//! Finding what one can do: the palette, the commands behind a slash, commands of files.

use serde_json::json;

use super::{
    super::{
        custom::Custom,
        msg::{EffectOutcome, Msg},
        test_app::*,
    },
    clicking::click,
};
use crate::{
    extensions::{CommandFile, CustomMode},
    protocol::{Command, Done, Event, Message, Mode, ModelOffer, ModelOffers, PASTES, Query, Reply},
    tui::{actions::writing::open_with, app::Effect},
};

fn custom(name: &str, text: &str) -> Custom {
    CommandFile::of(name, ".cursor/commands", text).into()
}

#[test]
fn the_palette_finds_by_letters_and_lists_what_was_done_lately_first() {
    let mut desk = TestApp::new(100, 40);
    desk.keys("<f3>");
    assert!(desk.shows("╭─ commands "), "{}", desk.picture());
    desk.keys("mdpl<enter>");
    assert_eq!(
        desk.app.composer.mode,
        Mode::Plan,
        "an argument is found with its command\n{}",
        desk.picture()
    );
    desk.keys("<f3>");
    let picture = desk.picture();
    let first = picture.lines().find(|it| it.contains("› ")).unwrap_or_default();
    assert!(first.contains("/mode"), "{picture}");
    desk.keys("outline");
    assert!(desk.shows("╭─ commands › outline "), "{}", desk.picture());
    desk.keys("<esc>hello");
    assert_eq!(desk.app.composer.field.text(), "hello");
}

#[test]
fn a_slash_lists_commands_and_then_what_may_stand_behind_them() {
    let mut desk = TestApp::new(100, 40);
    desk.keys("/");
    assert!(desk.shows("╭─ commands "), "{}", desk.picture());
    desk.keys("mo<tab>");
    assert_eq!(desk.app.composer.field.text(), "/mode ");
    assert!(desk.shows("debug") && desk.shows("plan"), "{}", desk.picture());
    desk.keys("de<enter>");
    assert_eq!(
        (desk.app.composer.mode, desk.app.composer.field.text().as_str()),
        (Mode::Debug, "")
    );
    assert!(!desk.shows("╭─"), "{}", desk.picture());
}

#[test]
fn enter_takes_what_was_begun_and_never_what_only_resembles_it() {
    let mut desk = TestApp::new(100, 40);
    desk.keys("/thei<enter>");
    assert!(desk.shows("unknown command /thei"), "{}", desk.picture());
    desk.keys("<alt+u>/hel<enter>");
    assert!(desk.shows("Keys and commands"), "{}", desk.picture());
    desk.keys("<esc>/<esc>x");
    assert_eq!(desk.app.composer.field.text(), "/x", "esc sends the list away only");
    desk.keys("<alt+u>/model gpt-x<enter>");
    assert_eq!(desk.app.composer.model.as_deref(), Some("gpt-x"));
    assert!(desk.sent().is_empty());
}

#[test]
fn how_hard_the_model_thinks_goes_with_each_message_until_it_is_taken_back() {
    let mut desk = TestApp::new(120, 40);
    desk.app.conversation.about.hears = true;
    desk.keys("/effort high<enter>first<enter>");
    assert!(desk.shows("model high"), "{}", desk.picture());
    desk.keys("/effort<enter>");
    assert!(desk.shows("╭─ effort "), "{}", desk.picture());
    desk.keys("<up><up><up><enter>");
    assert!(
        desk.shows("effort low") || desk.app.composer.effort == Some("off"),
        "{}",
        desk.picture()
    );
    desk.keys("/effort auto<enter>second<enter>/effort much<enter>");
    assert!(desk.shows("unknown effort much"), "{}", desk.picture());
    let efforts: Vec<_> = desk
        .sent()
        .iter()
        .filter_map(|it| match it {
            Command::Submit(submit) | Command::Steer(submit) => Some(submit.message.extra.get("effort").cloned()),
            _ => None,
        })
        .collect();
    assert_eq!(efforts, [Some("high".into()), None]);
}

#[test]
fn commands_of_files_are_offered_and_their_words_are_sent() {
    let mut desk = TestApp::new(100, 40);
    desk.keys("/");
    assert!(desk.front.effects.contains(&Effect::Commands));
    desk.take(Msg::Done(EffectOutcome::Commands(
        vec![custom("fix-it", "Fix $1 now.")],
        Vec::new(),
    )));
    desk.keys("fix");
    assert!(
        desk.shows("/fix-it") && desk.shows(".cursor/commands"),
        "{}",
        desk.picture()
    );
    desk.keys("<enter>cart.rs<enter>");
    let [Command::Submit(submit)] = &desk.sent()[..] else {
        panic!("{:?}", desk.sent())
    };
    // Who runs here knows the file; a gateway does not.
    assert_eq!(submit.message.content, "/fix-it cart.rs");
    assert_eq!(submit.message.command(), Some(("fix-it", "cart.rs")));
    desk.events([Event::UserMessage(Message::user("x"))]);
    desk.keys("<up>");
    assert_eq!(
        desk.app.composer.field.text(),
        "/fix-it cart.rs",
        "what was typed is remembered"
    );
    desk.app.conversation.about.runs = false;
    desk.keys("<enter>");
    let texts: Vec<String> = desk
        .sent()
        .iter()
        .filter_map(|it| match it {
            Command::Submit(submit) => Some(submit.message.content.clone()),
            _ => None,
        })
        .chain(desk.app.composer.queue.iter().map(|it| it.message.content.clone()))
        .collect();
    assert_eq!(texts.last().map(String::as_str), Some("Fix cart.rs now."));
}

#[test]
fn modes_of_files_come_after_the_programs_own_and_go_with_each_message() {
    for runs in [true, false] {
        modes_of_files(runs);
    }
}

/// `runs`: the agent is here, else a gateway is told the name.
fn modes_of_files(runs: bool) {
    let mut desk = TestApp::new(100, 40);
    desk.app.conversation.about.runs = runs;
    let mode = |name: &str, base| CustomMode {
        name: name.to_owned(),
        about: String::new(),
        base,
        tools: None,
        without: Vec::new(),
        model: None,
        effort: None,
        prompt: String::new(),
        path: ".sheaf/modes/x.md".to_owned(),
    };
    desk.keys("<shift+tab>");
    assert!(desk.front.effects.contains(&Effect::Commands));
    let modes = vec![mode("docs", Mode::Agent), mode("look", Mode::Ask)];
    desk.take(Msg::Done(EffectOutcome::Commands(Vec::new(), modes)));
    let mut seen = Vec::new();
    for _ in 0..10 {
        desk.keys("<shift+tab>");
        let composer = &desk.app.composer;
        let name = composer.commands.custom_mode.clone();
        let word = name.unwrap_or_else(|| composer.mode.as_str().to_owned());
        if seen.first() == Some(&word) {
            break;
        }
        assert!(desk.shows(&format!("── {word}")), "{word}\n{}", desk.picture());
        seen.push(word);
    }
    for name in ["docs", "look", "agent", "plan"] {
        assert!(seen.iter().any(|it| it == name), "{name}: {seen:?}");
    }
    desk.keys("/mode look<enter>");
    assert!(desk.shows("look") && desk.shows("read-only"), "{}", desk.picture());
    desk.keys("hello<enter>");
    let [Command::Submit(submit)] = &desk.sent()[..] else {
        panic!("{:?}", desk.sent())
    };
    assert_eq!((submit.mode, submit.message.custom_mode()), (Mode::Ask, Some("look")));
    desk.keys("/mode agent<enter>");
    assert_eq!(desk.app.composer.commands.custom_mode, None);
}

#[test]
fn a_theme_is_seen_before_it_is_chosen() {
    let mut desk = TestApp::new(100, 40);
    desk.keys("/theme<enter>");
    assert_eq!(desk.app.appearance.theme.name(), "sheaf-dark");
    // The one in use is first, then `auto`.
    desk.keys("<down><down>");
    assert_eq!(desk.app.appearance.theme.name(), "sheaf-light");
    desk.keys("<esc>");
    assert_eq!(desk.app.appearance.theme.name(), "sheaf-dark");
    desk.keys("/theme<enter><down><down><enter>");
    assert_eq!(desk.app.appearance.theme.name(), "sheaf-light");
}

#[test]
fn what_is_used_more_is_listed_first_and_a_beginning_before_that() {
    let mut desk = TestApp::new(80, 30);
    let first = |desk: &mut TestApp| {
        desk.draw();
        let lines = desk.picture();
        let line = lines.lines().find(|it| it.contains("│› /")).unwrap_or_default();
        line.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    let uses = [("export", 0), ("conversation.export", 3), ("mouse", 2), ("theme", 9)];
    let uses = uses.map(|(name, count)| (name.to_owned(), count));
    desk.take(Msg::Done(EffectOutcome::Uses(uses.into())));
    desk.keys("/");
    assert_eq!(first(&mut desk), "/theme", "the one used most");
    desk.keys("mo");
    assert_eq!(first(&mut desk), "/mouse", "of those that begin so");
    desk.keys("de");
    assert_eq!(first(&mut desk), "/mode", "the whole name");
    desk.keys("<ctrl+u>/vim<enter>");
    assert_eq!(desk.app.composer.commands.uses.get("vim"), Some(&1));
    assert!(desk.front.effects.contains(&Effect::CountUse("vim".to_owned())));
    desk.keys("<f3>");
    assert_eq!(first(&mut desk), "/theme", "the palette, too");
}

/// Models of two providers.
fn offers() -> ModelOffers {
    let offer = |provider: &str, is_own, name: &str, id: &str, price| ModelOffer {
        name: name.to_owned(),
        id: id.to_owned(),
        provider: provider.to_owned(),
        is_own,
        window: Some(200_000),
        price,
        has_effort: price.is_some(),
    };
    ModelOffers {
        models: vec![
            offer("OpenAI", true, "gpt-5.4-mini", "gpt-5.4-mini", Some((750, 4500))),
            offer("OpenAI", true, "gpt-5.4", "gpt-5.4", Some((2500, 15_000))),
            offer(
                "Anthropic",
                false,
                "anthropic/claude-sonnet-5",
                "claude-sonnet-5",
                Some((3000, 15_000)),
            ),
            offer("Anthropic", false, "anthropic/own", "own", None),
        ],
        problems: vec!["Mistral: the server does not accept the key".to_owned()],
    }
}

#[test]
fn models_of_all_providers_are_offered_with_what_the_choice_depends_on() {
    let asked = |it: &Query| *it == Query::ModelOffers;
    for (width, expected) in [
        (
            80,
            [
                "│› gpt-5.4          OpenAI · 200k · $2.5/$15 · effort               in use │",
                "│  gpt-5.4-mini     OpenAI · 200k · $0.75/$4.5 · effort                    │",
                "│  claude-sonnet-5  Anthropic · 200k · $3/$15 · effort                     │",
                "│  own              Anthropic · 200k                                       │",
            ],
        ),
        (
            40,
            [
                "│› gpt-5.4          OpenA…  in use │",
                "│  gpt-5.4-mini     OpenAI · 20…   │",
                "│  claude-sonnet-5  Anthropic ·…   │",
                "│  own              Anthropic ·…   │",
            ],
        ),
    ] {
        let mut desk = TestApp::new(width, 24);
        desk.app.conversation.about.model = Some("gpt-5.4".to_owned());
        desk.keys("/model<enter>");
        desk.reply_to(asked, Reply::ModelOffers(offers()));
        desk.draw();
        let picture = desk.picture();
        let lines: Vec<_> = picture
            .lines()
            .map(str::trim)
            .filter(|it| it.contains("  Anthropic") || it.contains("  Open"))
            .collect();
        assert_eq!(lines, expected, "{picture}");
        // What is cut stands below, else which provider failed.
        let below = if width == 40 {
            "╰─ OpenAI · 200k · $2.5/$15"
        } else {
            "Mistral: the server does"
        };
        assert!(desk.shows(below), "{picture}");
        desk.keys("son<enter>");
        assert_eq!(desk.app.composer.model.as_deref(), Some("anthropic/claude-sonnet-5"));
        desk.keys("/model<enter>");
        desk.reply_to(asked, Reply::ModelOffers(offers()));
        desk.draw();
        assert!(desk.picture().contains("│› claude-sonnet-5"), "{}", desk.picture());
    }
}

#[test]
fn an_export_gets_a_proposed_name_and_asks_before_it_overwrites() {
    let mut desk = TestApp::new(80, 24);
    let export = |path: &str, overwrites| {
        Some(Effect::Export {
            path: path.to_owned(),
            overwrites,
            draft: 0,
        })
    };
    // Which version of the draft it was does not matter here.
    let last = |desk: &TestApp| match desk.front.effects.last().cloned() {
        Some(Effect::Export { path, overwrites, .. }) => Some(Effect::Export {
            path,
            overwrites,
            draft: 0,
        }),
        Some(Effect::ProposeExport { title, .. }) => Some(Effect::ProposeExport { title, draft: 0 }),
        it => it,
    };
    let exists = |desk: &mut TestApp, path: &str| {
        desk.take(Msg::Done(EffectOutcome::ExportExists {
            path: path.to_owned(),
            draft: 0,
        }));
    };
    desk.keys("/export talk.md<enter>");
    assert_eq!(last(&desk), export("talk.md", false));
    desk.keys("/export<enter>");
    assert_eq!(
        last(&desk),
        Some(Effect::ProposeExport {
            title: String::new(),
            draft: 0
        })
    );
    desk.take(Msg::Done(EffectOutcome::ExportProposed {
        path: "~/talk.html".to_owned(),
        draft: 0,
    }));
    assert!(desk.shows("~/talk.html"), "{}", desk.picture());
    desk.keys("<enter>");
    assert_eq!(last(&desk), export("~/talk.html", false));
    exists(&mut desk, "~/talk.html");
    assert!(
        desk.shows("the file exists") && desk.shows("│› another name"),
        "{}",
        desk.picture()
    );
    desk.keys("<enter><backspace><backspace><backspace><backspace>md<enter>");
    assert_eq!(last(&desk), export("~/talk.md", false), "the safe way is the first");
    exists(&mut desk, "~/talk.md");
    desk.keys("<down><enter>");
    assert_eq!(last(&desk), export("~/talk.md", true));
    exists(&mut desk, "~/talk.md");
    let before = desk.front.effects.len();
    desk.keys("<esc>");
    assert_eq!(desk.front.effects.len(), before, "nothing is written");
}

#[test]
fn an_unknown_command_costs_no_words() {
    let mut desk = TestApp::new(100, 24);
    desk.keys("/thei fix the tests<enter>");
    assert!(desk.shows("unknown command /thei"), "{}", desk.picture());
    // Another command takes the words; a message does not get them mixed in.
    desk.keys("/");
    assert_eq!(desk.app.composer.field.text(), "/ fix the tests");
    desk.keys("<ctrl+u><ctrl+k>/thei fix the tests<enter>x");
    assert_eq!(desk.app.composer.field.text(), "x");
    // Whoever goes on with the line keeps it.
    desk.keys("<backspace>/thei fix the tests<enter><end>!");
    assert_eq!(desk.app.composer.field.text(), "/thei fix the tests!");
    desk.keys("<ctrl+u><ctrl+k><ctrl+p>");
    assert_eq!(
        desk.app.composer.field.text(),
        "/thei fix the tests",
        "it can be recalled"
    );
    // So does whoever clicks into it.
    desk.keys("<enter>");
    click(&mut desk, "hei fix");
    desk.keys("r");
    assert_eq!(desk.app.composer.field.text(), "/trhei fix the tests");
}

/// The first line of a program's start, once the commands of files are known; `typed` is written meanwhile.
fn opened(line: &str, typed: &str) -> TestApp {
    let mut desk = TestApp::new(100, 24);
    let effects = open_with(&mut desk.app, line.to_owned());
    assert_eq!(effects, [Effect::OpenWith(line.to_owned())]);
    desk.keys(typed);
    desk.take(Msg::Done(EffectOutcome::CommandsFor(
        line.to_owned(),
        vec![custom("fixit", "Mend it: $ARGUMENTS")],
        Vec::new(),
    )));
    desk
}

#[test]
fn a_line_that_the_program_is_started_with_is_a_command_or_said_to_be_none() {
    for typed in ["", "typed meanwhile"] {
        let desk = opened("/fixit the cart", typed);
        let sent = desk.sent();
        let [Command::Begin(submit)] = &sent[..] else {
            panic!("{sent:?}")
        };
        assert_eq!(submit.message.command(), Some(("fixit", "the cart")));
        assert_eq!(desk.app.composer.field.text(), typed);
    }
    let mut desk = opened("/fixti the cart", "");
    assert!(
        desk.sent().is_empty() && desk.shows("unknown command /fixti (did you mean /fixit?)"),
        "{}",
        desk.picture()
    );
    desk.keys("x");
    assert_eq!(desk.app.composer.field.text(), "x");
    let mut desk = opened("/fixti the cart", "typed meanwhile");
    assert!(
        desk.sent().is_empty() && desk.shows("unknown command /fixti"),
        "{}",
        desk.picture()
    );
    desk.keys("!");
    assert_eq!(desk.app.composer.field.text().matches("typed meanwhile").count(), 1);
    assert!(desk.shows("/fixti the cart"), "{}", desk.picture());
    // The program's own need no files; what the agent knows is the agent's; a path is no command.
    let mut desk = TestApp::new(100, 24);
    for (line, is_sent) in [
        ("/mode plan", false),
        ("/mcp__time__now", true),
        ("/etc/hosts is odd", true),
    ] {
        let effects = open_with(&mut desk.app, line.to_owned());
        let begins = |it: &Effect| matches!(it, Effect::Send(Command::Begin(it)) if it.message.content == line);
        assert_eq!(effects.iter().any(begins), is_sent, "{line}: {effects:?}");
        assert!(!effects.contains(&Effect::OpenWith(line.to_owned())), "{line}");
    }
    assert_eq!(desk.app.composer.mode, Mode::Plan);
}

#[test]
fn what_the_program_would_run_at_its_start_waits_in_the_draft() {
    let mut desk = TestApp::new(100, 24);
    let effects = open_with(&mut desk.app, "!make clean".to_owned());
    desk.draw();
    assert!(effects.is_empty() && desk.sent().is_empty());
    assert!(
        desk.shows("!make clean") && desk.shows("enter runs"),
        "{}",
        desk.picture()
    );
    desk.keys("<enter>");
    assert!(matches!(desk.sent().as_slice(), [Command::Run { line, .. }] if line == "make clean"));
    // Where nobody sees a draft, it is not the beginning of the next line, and an empty one sends it.
    for line in ["hello", ""] {
        let mut desk = TestApp::new(100, 24);
        open_with(&mut desk.app, "!make clean".to_owned());
        desk.take(Msg::Line(line.to_owned()));
        let sent = desk.sent();
        match sent.as_slice() {
            [Command::Submit(it)] => assert_eq!(it.message.content, line),
            [Command::Run { line: run, .. }] => assert!(line.is_empty() && run == "make clean"),
            other => panic!("{line:?}: {other:?}"),
        }
    }
}

#[test]
fn a_space_before_a_slash_or_an_exclamation_mark_sends_it_as_text() {
    let mut desk = TestApp::new(100, 24);
    desk.keys("/frobnicate it<enter>");
    assert!(
        desk.sent().is_empty() && desk.shows("a space before the slash sends it as text"),
        "{}",
        desk.picture()
    );
    desk.keys("<home> <enter>");
    let sent = desk.sent();
    assert!(
        matches!(sent.as_slice(), [Command::Submit(it)] if it.message.content == "/frobnicate it"),
        "{sent:?}"
    );
    let mut desk = TestApp::new(100, 24);
    desk.keys(" !important<enter>");
    let sent = desk.sent();
    assert!(
        matches!(sent.as_slice(), [Command::Submit(it)] if it.message.content == "!important"),
        "{sent:?}"
    );
}

#[test]
fn messages_that_come_back_keep_their_pictures_and_pastes() {
    let pasted = "line\n".repeat(40);
    let mut desk = TestApp::new(100, 40);
    let mut message = Message::user(format!("see [shot.png] and {pasted}[note] now"));
    let data = json!({ "mediaType": "image/png", "data": "iVBORw0KGgo=" });
    message.extra.insert("images".to_owned(), json!([data]));
    message
        .extra
        .insert(PASTES.to_owned(), json!([[19, 19 + pasted.len()]]));
    desk.keys("my draft");
    desk.app.composer.field.put_before(&message);
    let field = &desk.app.composer.field;
    assert_eq!(field.text(), format!("{}\nmy draft", message.content));
    assert_eq!(field.pictures(), [data]);
    let pastes: Vec<_> = field.pastes().iter().map(|it| (it.start, it.end)).collect();
    assert_eq!(pastes, [(19, 19 + pasted.len())]);
    // Its name is no longer in the text: it is a chip at the end.
    let mut plain = Message::user("look");
    plain.extra = message.extra.clone();
    plain.extra.shift_remove(PASTES);
    let mut desk = TestApp::new(100, 40);
    desk.app.composer.field.put_before(&plain);
    assert_eq!(desk.app.composer.field.pictures().len(), 1);
    assert_eq!(desk.app.composer.field.text(), "look[image]");
}

#[test]
fn a_folded_message_unfolds_whatever_its_rows() {
    let pasted = "line\n".repeat(40);
    let words = "why does this fail? ".repeat(12);
    let mut message = Message::user(format!("{words}{pasted}"));
    message
        .extra
        .insert(PASTES.to_owned(), json!([[words.len(), words.len() + pasted.len()]]));
    let mut desk = TestApp::new(80, 24);
    desk.events([Event::UserMessage(message), Event::Done(Done::default())]);
    assert!(desk.shows("pasted 40 lines"), "{}", desk.picture());
    desk.keys("<tab><enter>");
    assert!(!desk.shows("pasted 40 lines"), "{}", desk.picture());
}

#[test]
fn a_paste_goes_to_the_search_of_the_list_that_is_open() {
    let mut desk = super::finding::shelf(100);
    desk.paste("parser\n");
    assert!(desk.app.composer.field.is_empty());
    assert!(desk.shows("parser"), "{}", desk.picture());
    let finds = |it: &Effect| matches!(it, Effect::FindSessions(words) if words.contains("parser"));
    assert!(desk.front.effects.iter().any(finds));
    let mut desk = TestApp::new(100, 24);
    desk.keys("/inspect<enter>");
    desk.paste("delta");
    assert!(
        desk.app.composer.field.is_empty() && desk.shows("› delta"),
        "{}",
        desk.picture()
    );
}
