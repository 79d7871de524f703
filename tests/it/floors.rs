//! The table of floors in `src/lib.rs` holds: a module names modules on lower floors only.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    source::{Source, Token, group_end, library, root, shipped, starts},
    structure::Graph,
};

/// Beyond the floors: the screen shows what a link brings and cannot know where it comes from.
const STRANGERS: [(&str, &[&str]); 1] = [("tui", &["agent", "models", "server", "print"])];

/// Crates that stay behind the modules which wrap them, so that they can be replaced there.
const KEPT: [(&str, &[&str]); 39] = [
    ("ratatui", &["theme", "tui"]),
    ("ratatui_textarea", &["tui"]),
    ("crossterm", &["tui", "cli"]),
    ("clap", &["cli"]),
    ("reqwest", &["net"]),
    ("rustls", &["net"]),
    ("ring", &["net"]),
    ("eventsource_stream", &["net"]),
    ("hyper", &["net", "server"]),
    ("axum", &["server"]),
    ("pulldown_cmark", &["text"]),
    ("mermaid_text", &["text"]),
    ("syntect", &["text"]),
    ("two_face", &["text"]),
    ("vt100", &["text", "tui"]),
    ("directories", &["config"]),
    ("keyring", &["config"]),
    ("grep_matcher", &["tools"]),
    ("grep_regex", &["tools"]),
    ("grep_searcher", &["tools"]),
    ("nucleo_matcher", &["agent", "tools", "tui"]),
    ("tree_sitter_cpp", &["index"]),
    ("tree_sitter_go", &["index"]),
    ("tree_sitter_java", &["index"]),
    ("tree_sitter_php", &["index"]),
    ("tree_sitter_python", &["index"]),
    ("tree_sitter_ruby", &["index"]),
    ("tree_sitter_rust", &["index"]),
    ("tree_sitter_typescript", &["index"]),
    ("minijinja", &["agent"]),
    ("dom_smoothie", &["tools"]),
    ("landlock", &["sandbox"]),
    ("seccompiler", &["sandbox"]),
    ("rusqlite", &["cli", "embedding"]),
    ("rten", &["embedding"]),
    ("tokenizers", &["embedding"]),
    ("fluent_bundle", &["locale"]),
    ("fluent_syntax", &["locale"]),
    ("unic_langid", &["locale"]),
];

/// Module to floor.
type Floors = BTreeMap<String, u32>;

/// The table at the head of the crate: `//! | 0 | [`os`] [`text`] |`.
fn floors(lib: &str) -> Floors {
    let rows = lib.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("//! |")?.split('|');
        let floor: u32 = cells.next()?.trim().parse().ok()?;
        Some((floor, cells.next()?.to_owned()))
    });
    rows.flat_map(|(floor, cell)| {
        let names: Vec<_> = cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        names.into_iter().map(move |it| (it, floor))
    })
    .collect()
}

/// The modules right below the crate root that a file names, by `crate::`, by `super::` and in groups.
///
/// What cannot be followed (`use crate as x`, a glob over the root) is given as it stands, so that it is never allowed.
fn named(source: &Source) -> BTreeSet<String> {
    let tokens = &source.tokens;
    let mut found = BTreeSet::new();
    // Names and depths of the inline modules around the token.
    let mut inline: Vec<usize> = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        if matches!(rest, [Token::Word(word), Token::Word(_), Token::Sign('{'), ..] if word == "mod") {
            inline.push(depth);
            depth += 1;
            at += 3;
            continue;
        }
        match &tokens[at] {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => {
                depth = depth.saturating_sub(1);
                if inline.last() == Some(&depth) {
                    inline.pop();
                }
            }
            // A path goes on from here, or begins with something else.
            Token::Word(word) if word == "crate" || word == "super" => {
                let is_macro = at > 0 && tokens[at - 1].is("$");
                let is_inside = at > 1 && tokens[at - 1].is(":") && tokens[at - 2].is(":");
                let is_visibility = rest.get(1).is_some_and(|it| it.is(")"));
                if !is_macro && !is_inside && !is_visibility {
                    root_names(source, inline.len(), rest, &mut found);
                }
            }
            Token::Word(_) | Token::Sign(_) | Token::Text(_) => {}
        }
        at += 1;
    }
    found
}

/// Follows a path that begins with `crate` or `super`; adds what it names at the crate root.
fn root_names(source: &Source, inline: usize, path: &[Token], found: &mut BTreeSet<String>) {
    let mut height = if path[0].is("crate") {
        0
    } else {
        source.module.len() + inline
    };
    let mut at = 0;
    while path.get(at).is_some_and(|it| it.is("super")) {
        height = height.saturating_sub(1);
        at += 1;
        if !starts(&path[at..], "::") {
            break;
        }
        at += 2;
    }
    if path[0].is("crate") {
        at = if starts(&path[1..], "::") { 3 } else { 1 };
    }
    if height > 0 {
        return;
    }
    match path.get(at) {
        Some(Token::Sign('{')) => {
            let end = group_end(path, at) - 1;
            let mut item = at + 1;
            while item < end {
                found.extend(path[item].word().filter(|it| *it != "self").map(str::to_owned));
                if path[item].is("self") || path[item].is("*") {
                    found.insert("the crate root".to_owned());
                }
                // To the next comma of this group.
                while item < end && !path[item].is(",") {
                    item = if path[item].is("{") {
                        group_end(path, item)
                    } else {
                        item + 1
                    };
                }
                item += 1;
            }
        }
        Some(Token::Word(word)) if at > 0 && path[at - 1].is(":") => {
            found.insert(word.clone());
        }
        _ => {
            found.insert("the crate root".to_owned());
        }
    }
}

/// What a file names and may not.
fn breaches(source: &Source, floors: &Floors) -> Vec<String> {
    let own = source.top();
    let Some(&floor) = floors.get(own) else {
        return vec![format!("{}: {own} is on no floor", source.path)];
    };
    let is_allowed = |name: &str| {
        let stranger = STRANGERS
            .iter()
            .any(|(module, names)| *module == own && names.contains(&name));
        name == own || (!stranger && floors.get(name).is_some_and(|it| *it < floor))
    };
    named(source)
        .into_iter()
        // `t!` stands at the root, as every exported macro, and speaks for `locale`.
        .filter(|it| !is_allowed(if it == "t" { "locale" } else { it }))
        .map(|it| format!("{} (floor {floor}) names {it}", source.path))
        .collect()
}

#[test]
fn every_module_uses_lower_floors_only() {
    let lib = std::fs::read_to_string(root().join("src/lib.rs")).expect("the crate root");
    let floors = floors(&lib);
    let sources: Vec<_> = library().into_iter().filter(|it| !it.module.is_empty()).collect();
    assert!(sources.len() > 50, "the sources are found: {}", sources.len());
    let found: Vec<_> = sources.iter().flat_map(|it| breaches(it, &floors)).collect();
    assert_eq!(found, Vec::<String>::new());
    // The check does see names.
    let all: BTreeSet<_> = sources.iter().flat_map(named).collect();
    assert!(
        all.contains("protocol") && all.contains("text") && all.contains("link"),
        "{all:?}"
    );
}

#[test]
fn modules_of_the_screen_use_lower_floors_only() {
    let text = std::fs::read_to_string(root().join("src/tui/mod.rs")).expect("the module");
    let floors = floors(&text);
    assert_eq!(
        floors.keys().cloned().collect::<BTreeSet<_>>(),
        declared("tui/mod.rs", &text)
    );
    let sources = shipped();
    let graph = Graph::new(&sources);
    let mut upward = BTreeSet::new();
    for source in sources.iter().filter(|it| it.top() == "tui" && it.module.len() > 1) {
        for target in &graph.imports[&source.module] {
            if let [top, to, ..] = target.as_slice()
                && top == "tui"
                && *to != source.module[1]
                && floors[to] >= floors[&source.module[1]]
            {
                upward.insert((source.path.as_str(), to.as_str()));
            }
        }
    }
    assert_eq!(upward, BTreeSet::new());
}

#[test]
fn the_table_names_every_module_and_no_other() {
    let text = std::fs::read_to_string(root().join("src/lib.rs")).expect("the crate root");
    let listed: BTreeSet<_> = floors(&text).into_keys().collect();
    assert_eq!(listed, declared("lib.rs", &text));
}

/// The modules that a file declares in files of their own, but those of tests.
fn declared(path: &str, text: &str) -> BTreeSet<String> {
    let source = Source::new(path, text);
    let names = source
        .tokens
        .windows(3)
        .filter(|it| it[0].is("mod") && it[2].is(";"))
        .filter_map(|it| it[1].word().map(str::to_owned));
    names
        .filter(|it| !["tests", "test_app"].contains(&it.as_str()))
        .collect()
}

#[test]
fn a_planted_breach_is_seen() {
    let floors = floors(
        "//! | floor | modules |\n//! | --- | --- |\n//! | 0 | [`text`] [`os`] |\n//! | 1 | `protocol` |\n//! | 3 | [`models`] |\n//! | 4 | [`agent`] [`tui`] |\n//! | 5 | [`cli`] |",
    );
    for (path, text, wants) in [
        ("tui/mod.rs", "use crate::{text::Sanitized, protocol};", ""),
        ("tui/mod.rs", "use crate::agent::Turn;", "agent"),
        ("tui/mod.rs", "use crate::models::Provider;", "models"),
        ("agent/mod.rs", "use crate::models::Provider;", ""),
        (
            "agent/mod.rs",
            "pub use crate::{protocol::{Event, Id}, tui::App};",
            "tui",
        ),
        ("text/wrap.rs", "fn f() { crate::protocol::f() }", "protocol"),
        ("text/mod.rs", "use super::protocol;", "protocol"),
        ("text/wrap.rs", "use super::protocol;", ""),
        (
            "text/wrap.rs",
            "use super::super::{os, protocol::Event};",
            "os, protocol",
        ),
        (
            "text/wrap.rs",
            "mod tests { use super::super::super::os; use super::super::os; }",
            "os",
        ),
        (
            "text/wrap.rs",
            "mod tests { use super::super::Row; } use super::super::cli;",
            "cli",
        ),
        ("text/wrap.rs", "impl Row { fn f() {} } use crate::os::file;", "os"),
        ("protocol/id.rs", "use crate::*;", "the crate root"),
        ("protocol/id.rs", "use crate as sheaf;", "the crate root"),
        ("protocol/id.rs", "use crate::{self as sheaf};", "the crate root"),
        (
            "protocol/id.rs",
            "pub(crate) fn f() {} pub(super) fn g() {} pub(in crate::protocol) fn h() {}",
            "",
        ),
        (
            "protocol/id.rs",
            "/// As [`crate::tui`] does.\n// crate::cli\nconst X: &str = \"crate::cli\";",
            "",
        ),
        ("cli/mod.rs", "use crate::{agent, tui, models, text, os, protocol};", ""),
        ("drawer/mod.rs", "", "drawer"),
    ] {
        let found = breaches(&Source::new(path, text), &floors).join("; ");
        if wants.is_empty() {
            assert_eq!(found, "", "{path}: {text}");
        } else {
            for name in wants.split(", ") {
                assert!(found.contains(name), "{path}: {text}\nfound: {found:?}");
            }
            assert_eq!(found.split("; ").count(), wants.split(", ").count(), "{found}");
        }
    }
}

#[test]
fn crates_stay_behind_the_modules_that_wrap_them() {
    let mut found = Vec::new();
    for source in shipped() {
        for (at, pair) in source.tokens.windows(2).enumerate() {
            let is_path = starts(&source.tokens[at + 1..], "::") && (at == 0 || !source.tokens[at - 1].is(":"));
            let Some((name, homes)) = KEPT.iter().find(|(name, _)| pair[0].is(name)) else {
                continue;
            };
            if is_path && !homes.contains(&source.top()) {
                found.push(format!("{} names {name}", source.path));
            }
        }
    }
    found.dedup();
    assert_eq!(found, Vec::<String>::new());
}
