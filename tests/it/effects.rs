//! Rules of the house that no compiler holds.

use std::collections::BTreeSet;

use crate::source::{Source, files, group_end, library, root, shipped, shipped_with_texts, starts, tokens};

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
    // The standard output of the sandbox's helper is a pipe to sheaf.
    ("io::stdout", &["cli", "tui/terminal/tty.rs", "sandbox/kernel/enter.rs"]),
    ("io::stderr", &["cli", "tui/screen.rs"]),
    ("std::process::Command", &["os", "sandbox"]),
    ("tokio::process::Command", &["os", "sandbox"]),
    ("process::exit", &[]),
    ("fs::write", &["os"]),
    ("File::create", &["os", "journal"]),
    (
        "OpenOptions::new",
        &["os", "journal", "tui/terminal/tty.rs", "cli/doctor/terminal.rs"],
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

/// Escape sequences that are written in a module of the screen which is no part of the terminal.
fn sequences(source: &Source) -> Vec<String> {
    if source.top() != "tui" || source.module.starts_with(&["tui".to_owned(), "terminal".to_owned()]) {
        return Vec::new();
    }
    let is_sequence = |text: &str| {
        let text = text.to_lowercase();
        ["\u{1b}", "\\x1b", "\\u{1b}", "\\x9b", "\\u{9b}", "\\x07"]
            .iter()
            .any(|it| text.contains(it))
    };
    let texts = source
        .tokens
        .iter()
        .filter_map(|it| it.text())
        .filter(|it| is_sequence(it));
    let texts = texts.map(|it| format!("{}: {it}", source.path));
    // Only the surface speaks to the backend.
    let backend = source.tokens.iter().filter(|it| it.is("AnsiBackend"));
    texts
        .chain(backend.map(|_| format!("{}: AnsiBackend", source.path)))
        .collect()
}

#[test]
fn only_the_terminal_module_knows_escape_sequences() {
    let found: Vec<_> = shipped_with_texts().iter().flat_map(sequences).collect();
    assert_eq!(found, Vec::<String>::new());
    let planted =
        r#"fn f(out: &mut Vec<u8>) { out.extend_from_slice(b"\x1b[2J"); g("plain"); AnsiBackend::default(); }"#;
    for (path, expected) in [
        (
            "tui/widgets/x.rs",
            vec!["tui/widgets/x.rs: \\x1b[2J", "tui/widgets/x.rs: AnsiBackend"],
        ),
        ("tui/terminal/x.rs", Vec::new()),
        ("text/x.rs", Vec::new()),
    ] {
        assert_eq!(sequences(&Source::with_texts(path, planted)), expected);
    }
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
    let mut used = words(&shipped());
    // Chooses the tables of a dependency's dependency.
    used.insert("idna_adapter".to_owned());
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

/// Modules that hold a terminal in their hands, as a handle or through what is printed.
const NEAR_A_TERMINAL: [&str; 4] = ["cli", "print", "server", "tui"];

/// Functions that write what is no text of anybody's, or have cleaned it in a way that is tested where it stands.
const PURE_WRITERS: [&str; 8] = [
    // The answer, as JSON or as a text that is clean as a whole.
    "cli/doctor/mod.rs: run",
    // Questions to the terminal.
    "cli/doctor/terminal.rs: drop",
    // Figures of the work that goes on.
    "cli/index.rs: overwrite",
    // The log file.
    "cli/trace.rs: write",
    // To a text.
    "print/json.rs: escaped",
    // The socket of a client.
    "server/stream_connection.rs: send",
    // The history of what was sent is a file.
    "tui/prompt_store.rs: note",
    // The constant that gives the terminal back.
    "tui/terminal/tty.rs: leave",
];

/// Functions that write to something and do not name [`Sanitized`](sheaf::text::Sanitized).
fn unclean_writers(source: &Source) -> Vec<String> {
    if !NEAR_A_TERMINAL.contains(&source.top()) {
        return Vec::new();
    }
    let tokens = &source.tokens;
    let mut found = BTreeSet::new();
    for at in 0..tokens.len() {
        let is_call =
            tokens[at].is("write_all") && starts(&tokens[at + 1..], "(") && at > 0 && !tokens[at - 1].is("fn");
        // `write!` to a handle, not to a text.
        let is_macro = (tokens[at].is("write") || tokens[at].is("writeln")) && starts(&tokens[at + 1..], "!(") && {
            let first: Vec<_> = tokens[at + 3..]
                .iter()
                .take_while(|it| !it.is(",") && !it.is(")"))
                .collect();
            first.iter().any(|it| {
                ["out", "err", "stdout", "stderr", "outputs"]
                    .iter()
                    .any(|name| it.is(name))
            })
        };
        if !is_call && !is_macro {
            continue;
        }
        let Some(start) = (0..at)
            .rev()
            .find(|&it| tokens[it].is("fn") && tokens[it + 1].word().is_some())
        else {
            continue;
        };
        let name = tokens[start + 1].word().unwrap_or_default();
        let body = (start..tokens.len()).find(|&it| tokens[it].is("{")).unwrap_or(start);
        let names_sanitized = tokens[start..group_end(tokens, body)]
            .iter()
            .any(|it| it.is("Sanitized"));
        if !names_sanitized {
            found.insert(format!("{}: {name}", source.path));
        }
    }
    found.into_iter().collect()
}

#[test]
fn whatever_reaches_a_terminal_is_clean() {
    let found: Vec<_> = shipped().iter().flat_map(unclean_writers).collect();
    assert_eq!(found, PURE_WRITERS);
}

#[test]
fn a_planted_way_around_the_sanitiser_is_seen() {
    for (path, text, expected) in [
        (
            "print/x.rs",
            "impl O { fn say(&mut self, text: &str) { self.out.write_all(text.as_bytes()); } }",
            "print/x.rs: say",
        ),
        (
            "cli/x.rs",
            "fn f(text: &str) { let _ = writeln!(stderr, \"{text}\"); }",
            "cli/x.rs: f",
        ),
        (
            "print/x.rs",
            "fn say(out: &mut W, text: &Sanitized) { out.write_all(text.as_bytes()); }",
            "",
        ),
        ("print/x.rs", "fn f(s: &mut String) { write!(s, \"x\"); }", ""),
        ("models/x.rs", "fn f(w: W, b: &[u8]) { w.write_all(b); }", ""),
    ] {
        assert_eq!(unclean_writers(&Source::new(path, text)).join(" "), expected, "{text}");
    }
}
