//! Finding what one can do: the palette, the commands behind a slash, commands of files.

use super::super::{
    custom::Custom,
    msg::{EffectOutcome, Msg},
    test_app::*,
};
use crate::{
    protocol::{Command, Event, Message, Mode},
    tui::app::Effect,
};

fn custom(name: &str, text: &str) -> Custom {
    Custom {
        name: name.into(),
        about: "what it is for".into(),
        origin: ".cursor/commands".into(),
        text: text.into(),
    }
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
    desk.take(Msg::Done(EffectOutcome::Commands(vec![custom(
        "fix-it",
        "Fix $1 now.",
    )])));
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
    assert_eq!(submit.message.content, "Fix cart.rs now.");
    desk.events([Event::UserMessage(Message::user("x"))]);
    desk.keys("<up>");
    assert_eq!(
        desk.app.composer.field.text(),
        "/fix-it cart.rs",
        "what was typed is remembered"
    );
}

#[test]
fn a_theme_is_seen_before_it_is_chosen() {
    let mut desk = TestApp::new(100, 40);
    desk.keys("/theme<enter>");
    assert_eq!(desk.app.appearance.theme.name(), "sheaf-dark");
    desk.keys("<down>");
    assert_eq!(desk.app.appearance.theme.name(), "sheaf-light");
    desk.keys("<esc>");
    assert_eq!(desk.app.appearance.theme.name(), "sheaf-dark");
    desk.keys("/theme<enter><down><enter>");
    assert_eq!(desk.app.appearance.theme.name(), "sheaf-light");
}
