//! Rules of the house that no compiler holds.

use std::collections::BTreeSet;

use crate::source::{Source, files, group_end, library, root, shipped, starts, tokens};

/// What reaches the world, and the only places that may do so.
///
/// A place is a module or a file below `src`. Everything else goes through them, so that a file is never left half
/// written, a command dies with its children, and nothing reaches a terminal unsanitised.
const EFFECTS: [(&str, &[&str]); 16] = [
    ("print!", &[]),
    ("println!", &[]),
    ("eprint!", &[]),
    ("eprintln!", &[]),
    ("dbg!", &[]),
    ("todo!", &[]),
    ("unimplemented!", &[]),
    ("io::stdout", &["cli", "tui/tty.rs"]),
    ("io::stderr", &["cli", "tui/run.rs"]),
    ("std::process::Command", &["os", "sandbox"]),
    ("tokio::process::Command", &["os", "sandbox"]),
    ("process::exit", &[]),
    ("fs::write", &["os"]),
    ("File::create", &["os", "journal"]),
    (
        "OpenOptions::new",
        &["os", "journal", "tui/tty.rs", "cli/doctor/terminal.rs"],
    ),
    ("fs::rename", &["os", "journal"]),
];

fn effects(source: &Source) -> Vec<String> {
    let is_home = |homes: &[&str]| homes.iter().any(|it| *it == source.top() || *it == source.path);
    let away: Vec<_> = EFFECTS
        .iter()
        .filter(|(_, homes)| !is_home(homes))
        .map(|(what, _)| (what, tokens(what)))
        .collect();
    let mut found = Vec::new();
    for at in 0..source.tokens.len() {
        for (what, tokens) in &away {
            if source.tokens[at..].starts_with(tokens) {
                found.push(format!("{}: {what}", source.path));
            }
        }
    }
    found
}

#[test]
fn the_world_is_reached_from_few_places() {
    let found: Vec<_> = shipped().iter().flat_map(effects).collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_planted_effect_is_seen() {
    let planted = Source::new(
        "agent/turn.rs",
        "fn f() { println!(\"x\"); std::fs::write(a, b); tokio::process::Command::new(c); let s = \"print!\"; }",
    );
    assert_eq!(
        effects(&planted),
        [
            "agent/turn.rs: println!",
            "agent/turn.rs: fs::write",
            "agent/turn.rs: tokio::process::Command"
        ]
    );
}

/// Lints that are switched off without saying why.
fn unexplained(source: &Source) -> usize {
    let tokens = &source.tokens;
    (0..tokens.len())
        .filter(|&at| (tokens[at].is("allow") || tokens[at].is("expect")) && starts(&tokens[at + 1..], "("))
        // In an attribute, not as a method.
        .filter(|&at| at > 0 && (tokens[at - 1].is("[") || tokens[at - 1].is(",")) && is_in_attribute(source, at))
        .filter(|&at| !tokens[at..group_end(tokens, at + 1)].iter().any(|it| it.is("reason")))
        .count()
}

fn is_in_attribute(source: &Source, at: usize) -> bool {
    (0..at).rev().any(|it| {
        let tokens = &source.tokens;
        tokens[it].is("[")
            && group_end(tokens, it) > at
            && it > 0
            && (tokens[it - 1].is("#") || (it > 1 && tokens[it - 1].is("!") && tokens[it - 2].is("#")))
    })
}

#[test]
fn a_lint_is_switched_off_for_a_reason_only() {
    let found: Vec<_> = library()
        .into_iter()
        .filter(|it| unexplained(it) > 0)
        .map(|it| it.path)
        .collect();
    assert_eq!(found, Vec::<String>::new());
    for (text, count) in [
        ("#[allow(dead_code)] fn f() {}", 1),
        ("#![allow(a, b)]", 1),
        ("#[cfg_attr(test, allow(a))] fn f() {}", 1),
        ("#[expect(a, reason = \"b\")] fn f() { x.expect(\"c\"); }", 0),
        ("fn f() { let x = [a, expect(b)]; }", 0),
    ] {
        assert_eq!(unexplained(&Source::new("x.rs", text)), count, "{text}");
    }
}

#[test]
fn every_file_of_tests_is_declared() {
    let folder = root().join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).expect("the list");
    let main = tokens(&main);
    let declared: BTreeSet<_> = main
        .windows(3)
        .filter(|it| it[0].is("mod") && it[2].is(";"))
        .filter_map(|it| it[1].word().map(str::to_owned))
        .collect();
    let there: BTreeSet<_> = std::fs::read_dir(&folder)
        .expect("a folder")
        .flatten()
        .filter_map(|it| it.file_name().to_string_lossy().strip_suffix(".rs").map(str::to_owned))
        .filter(|it| it != "main")
        .collect();
    assert_eq!(declared, there);
}

#[test]
fn the_project_stands_on_its_own() {
    // Written in two halves, so that this file passes too.
    let outside = [
        concat!("../", "shared"),
        concat!("/", "work/main"),
        concat!("/", "work/wt"),
    ];
    let mut found = Vec::new();
    for path in files(&root()) {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        if outside.iter().any(|it| text.contains(it)) {
            found.push(path);
        }
    }
    assert_eq!(found, Vec::<std::path::PathBuf>::new());
}

/// Names of a table of dependencies, as Rust writes them.
fn dependencies(manifest: &toml::Table, table: &str) -> Vec<String> {
    let own = manifest.get(table).and_then(toml::Value::as_table);
    let own = own.into_iter().flat_map(|it| it.keys());
    own.map(|it| it.replace('-', "_")).collect()
}

#[test]
fn every_dependency_is_used() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let words = |sources: &[Source]| -> BTreeSet<String> {
        let tokens = sources.iter().flat_map(|it| &it.tokens);
        tokens.filter_map(|it| it.word().map(str::to_owned)).collect()
    };
    let used = words(&shipped());
    let unused: Vec<_> = dependencies(&manifest, "dependencies")
        .into_iter()
        .filter(|it| !used.contains(it))
        .collect();
    assert_eq!(unused, Vec::<String>::new(), "in the program");
    let tests: Vec<_> = ["tests", "benches"]
        .iter()
        .flat_map(|it| files(&root().join(it)))
        .filter(|it| it.extension().is_some_and(|it| it == "rs"))
        .map(|it| Source::new("", &std::fs::read_to_string(it).expect("text")))
        .chain(library())
        .collect();
    let used = words(&tests);
    let unused: Vec<_> = dependencies(&manifest, "dev-dependencies")
        .into_iter()
        .filter(|it| !used.contains(it))
        .collect();
    assert_eq!(unused, Vec::<String>::new(), "in tests");
}
