use std::{borrow::Cow, collections::BTreeSet};

use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement};
use pretty_assertions::assert_eq;

use super::*;

/// The variables that a pattern names, wherever they stand in it.
fn variables<'a>(pattern: &Pattern<&'a str>, into: &mut BTreeSet<&'a str>) {
    fn inline<'a>(it: &InlineExpression<&'a str>, into: &mut BTreeSet<&'a str>) {
        match it {
            InlineExpression::VariableReference { id } => {
                into.insert(id.name);
            }
            InlineExpression::FunctionReference { arguments, .. } => {
                for it in &arguments.positional {
                    inline(it, into);
                }
            }
            InlineExpression::Placeable { expression } => any(expression, into),
            _ => {}
        }
    }
    fn any<'a>(it: &Expression<&'a str>, into: &mut BTreeSet<&'a str>) {
        match it {
            Expression::Inline(it) => inline(it, into),
            Expression::Select { selector, variants } => {
                inline(selector, into);
                for it in variants {
                    variables(&it.value, into);
                }
            }
        }
    }
    for element in &pattern.elements {
        if let PatternElement::Placeable { expression } = element {
            any(expression, into);
        }
    }
}

/// Every message of a file with the arguments it wants.
fn messages(text: &str) -> Vec<(&str, BTreeSet<&str>)> {
    let resource = fluent_syntax::parser::parse(text).unwrap_or_else(|(_, errors)| panic!("{errors:?}"));
    let of = resource.body.into_iter().filter_map(|entry| match entry {
        Entry::Message(message) => {
            let mut wants = BTreeSet::new();
            let value = message.value.as_ref();
            variables(
                value.unwrap_or_else(|| panic!("{} says nothing", message.id.name)),
                &mut wants,
            );
            Some((message.id.name, wants))
        }
        Entry::Junk { content } => panic!("{content}"),
        Entry::Term(_) | Entry::Comment(_) | Entry::GroupComment(_) | Entry::ResourceComment(_) => None,
    });
    of.collect()
}

#[test]
fn what_is_compiled_in_is_read_as_the_parser_reads_it() {
    for language in LANGUAGES {
        let ours = built_in(language.tag).expect("it is compiled in");
        let (parsed, faults) = Catalogue::read(language.tag, Cow::Owned(language.text.to_owned()));
        assert_eq!(faults, []);
        let ids = messages(language.text).into_iter().map(|it| it.0);
        for id in ids {
            assert!(ours.has(id), "{id}");
            assert_eq!(ours.plain(id), parsed.plain(id), "{id}");
            let arguments: FluentArgs<'_> = ["count", "name"]
                .map(|it| (it, FluentValue::from(1234)))
                .into_iter()
                .collect();
            assert_eq!(ours.format(id, &arguments), parsed.format(id, &arguments), "{id}");
        }
        assert_eq!(ours.plain("nothing-has-this-id"), None);
    }
}

#[test]
fn what_a_language_says_has_the_arguments_of_english() {
    let english = messages(LANGUAGES[0].text);
    for language in LANGUAGES {
        let said = messages(language.text);
        let ids: BTreeSet<_> = said.iter().map(|it| it.0).collect();
        assert_eq!(ids.len(), said.len(), "{} says something twice", language.tag);
        let differs = |(id, wants): &&(&str, BTreeSet<&str>)| said.iter().any(|it| it.0 == *id && it.1 != *wants);
        let wrong: Vec<_> = english.iter().filter(differs).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", language.tag);
        // Other languages may lag behind: English stands in for what they lack.
        let missing: Vec<_> = english.iter().map(|it| it.0).filter(|it| !ids.contains(it)).collect();
        if !missing.is_empty() {
            eprintln!(
                "{} lacks {} messages: {}",
                language.tag,
                missing.len(),
                missing.join(", ")
            );
        }
        let known: BTreeSet<_> = english.iter().map(|it| it.0).collect();
        // The English description of a setting is the documentation of its field.
        let strange: Vec<_> = ids
            .difference(&known)
            .filter(|it| !it.starts_with("setting-"))
            .collect();
        assert!(
            strange.is_empty(),
            "{} has what English has not: {strange:?}",
            language.tag
        );
    }
}

#[test]
fn what_is_said_follows_the_language() {
    assert_eq!(t!("phase-writing"), "writing");
    let german = within("de", || (t!("phase-writing"), t!("composer-unseen", count = 1_200)));
    assert_eq!(german, ("schreibt", "1200 neu ↓".to_owned()));
    assert_eq!(t!("composer-unseen", count = 2), "2 new ↓");
}

#[test]
fn what_a_language_does_not_say_is_said_in_english() {
    let (catalogue, faults) = Catalogue::read("fr", Cow::Owned("phase-writing = travaille\nbroken\n".to_owned()));
    assert_eq!(faults.iter().map(|it| it.line).collect::<Vec<_>>(), [2]);
    assert_eq!(catalogue.plain("phase-writing"), Some("travaille"));
    assert_eq!(catalogue.plain("composer-waiting"), None);
    let before = OF_TEST.replace(Some(catalogue));
    assert_eq!(
        (t!("phase-writing"), t!("composer-waiting")),
        ("travaille", "waiting for you")
    );
    OF_TEST.set(before);
}

#[test]
fn a_users_file_brings_no_escape_sequence() {
    let text = "phase-writing = a\u{1b}]0;title\u{7}b\u{9b}2J\n".to_owned();
    let (catalogue, _) = Catalogue::read("fr", Cow::Owned(text));
    assert_eq!(catalogue.plain("phase-writing"), Some("ab"));
}

#[test]
fn the_environment_is_read_as_gettext_reads_it() {
    let of = |pairs: &[(&str, &str)]| {
        let find = |name: &str| pairs.iter().find(|it| it.0 == name).map(|it| it.1.to_owned());
        of_environment(find)
    };
    assert_eq!(of(&[]), [""; 0]);
    assert_eq!(of(&[("LANG", "de_DE.UTF-8")]), ["de-DE"]);
    assert_eq!(of(&[("LC_ALL", ""), ("LANG", "de_AT@euro")]), ["de-AT"]);
    assert_eq!(
        of(&[("LC_ALL", "C.UTF-8"), ("LANG", "de_DE"), ("LANGUAGE", "de")]),
        [""; 0]
    );
    assert_eq!(of(&[("LANG", "en_GB"), ("LANGUAGE", "de:fr")]), ["de", "fr", "en-GB"]);
    assert_eq!(of(&[("LANG", "../../etc/passwd")]), [""; 0]);
}

#[test]
fn the_users_file_comes_before_ours_and_a_country_before_its_language() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("de-CH.ftl"), "phase-writing = schafft\n").expect("written");
    let of = |tags: &[&str]| {
        let tags: Vec<_> = tags.iter().map(|it| (*it).to_owned()).collect();
        let (found, faults) = find(&tags, Some(folder.path())).expect("it can be read");
        assert_eq!(faults, []);
        found.map(|it| (it.tag(), it.plain("phase-writing")))
    };
    assert_eq!(of(&["de-CH"]), Some(("de-CH", Some("schafft"))));
    let tags = ["de-CH".to_owned()];
    let (swiss, _) = find(&tags, Some(folder.path())).expect("it can be read");
    let queued = swiss.and_then(|it| it.format("composer-queued", &[("count", 2)].into_iter().collect()));
    assert_eq!(
        (swiss.and_then(|it| it.plain("composer-waiting")), queued.as_deref()),
        (Some("wartet auf dich"), Some("2 eingereiht")),
        "what the country does not say its language says"
    );
    assert_eq!(of(&["de-AT"]), Some(("de", Some("schreibt"))));
    assert_eq!(of(&["fr", "de"]), Some(("de", Some("schreibt"))));
    assert_eq!(of(&["en-GB", "de"]), None, "English is what everything falls back to");
}

#[test]
fn english_is_short_and_plain() {
    let strange = [
        "nobody",
        "somebody",
        "whoever",
        "taken back",
        "take back",
        "there is no ",
        "is no ",
        "so many",
        "goes on",
        "behind",
        "of its own",
        "is told",
    ];
    for line in LANGUAGES[0].text.lines() {
        let Some((id, text)) = line.split_once(" = ").filter(|it| !it.0.starts_with(['#', ' '])) else {
            continue;
        };
        // A placeable counts as one word.
        let mut depth = 0;
        let words = text
            .split_whitespace()
            .filter(|word| {
                let is_counted = depth == 0;
                depth += word.matches('{').count();
                depth -= word.matches('}').count();
                is_counted
            })
            .count();
        assert!(words <= 15, "{id}: {words} words: {text}");
        for phrase in strange {
            assert!(!text.contains(phrase), "{id}: `{phrase}`: {text}");
        }
    }
}
