use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use super::{
    super::walk::tests::{Tree, input},
    look::MOST_CHARACTERS,
    *,
};

fn outcome(tree: &Tree, given: Value) -> Result<Outcome, Fault> {
    search(&tree.workspace, &input(&tool(), given), &Until::done())
}

fn run(tree: &Tree, given: Value) -> String {
    outcome(tree, given).map_or_else(|it| it.text(), |it| it.text)
}

fn shop() -> Tree {
    Tree::new(&[
        ("src/cart.rs", b"use money;\n\npub struct Cart {\n    items: Vec<Item>,\n}\n\nimpl Cart {\n    pub fn total(&self) {}\n}\n"),
        ("src/money.rs", b"pub struct Money;\r\nimpl Money {}\r\n"),
        ("tests/cart.rs", b"fn Total() {}\n"),
        ("notes.txt", b"total total\nfoo(bar\n"),
        (".github/ci.yml", b"run: total\n"),
        (".git/config", b"total\n"),
        (".gitignore", b"*.log\n"),
        ("build.log", b"total\n"),
        ("blob.bin", b"total\0total\n"),
    ])
}

#[test]
fn matches_are_grouped_by_file() {
    let tree = shop();
    let cases = [
        (
            "a word in several files",
            json!({ "pattern": "total" }),
            ".github/ci.yml\n1:run: total\n\nnotes.txt\n1:total total\n\nsrc/cart.rs\n8:    pub fn total(&self) {}",
        ),
        (
            "without regard to case",
            json!({ "pattern": "TOTAL", "-i": true, "path": "tests" }),
            "tests/cart.rs\n1:fn Total() {}",
        ),
        (
            "in one file",
            json!({ "pattern": "total", "path": "src/cart.rs" }),
            "src/cart.rs\n8:    pub fn total(&self) {}",
        ),
        (
            "with context",
            json!({ "pattern": "Cart", "-C": 1 }),
            "src/cart.rs\n2-\n3:pub struct Cart {\n4-    items: Vec<Item>,\n--\n6-\n7:impl Cart {\n8-    pub fn total(&self) {}",
        ),
        (
            "the own numbers win over -C",
            json!({ "pattern": "Cart", "-A": 0, "-C": 1 }),
            "src/cart.rs\n2-\n3:pub struct Cart {\n--\n6-\n7:impl Cart {",
        ),
        (
            "context of a shown match only",
            json!({ "pattern": "Cart", "-C": 1, "head_limit": 1 }),
            "src/cart.rs\n2-\n3:pub struct Cart {\n4-    items: Vec<Item>,\n[cut: 1 of 2 matches shown; use offset=1]",
        ),
        (
            "the next page",
            json!({ "pattern": "Cart", "offset": 1 }),
            "src/cart.rs\n7:impl Cart {",
        ),
        (
            "a page across files",
            json!({ "pattern": "total", "offset": 1, "head_limit": 1 }),
            "notes.txt\n1:total total\n[cut: 1 of 3 matches shown; use offset=2]",
        ),
        (
            "a page beyond the end",
            json!({ "pattern": "total", "offset": 9 }),
            "There are only 3 matches.",
        ),
        (
            "by ending",
            json!({ "pattern": "total", "glob": "*.{txt,yml}", "output_mode": "files_with_matches" }),
            ".github/ci.yml\nnotes.txt",
        ),
        (
            "by what is left out",
            json!({ "pattern": "total", "glob": "!src/**,!.github" }),
            "notes.txt\n1:total total",
        ),
        (
            "by type",
            json!({ "pattern": "total", "type": "rust" }),
            "src/cart.rs\n8:    pub fn total(&self) {}",
        ),
        (
            "counted",
            json!({ "pattern": "struct|impl", "output_mode": "count" }),
            "src/cart.rs:2\nsrc/money.rs:2",
        ),
        (
            "a page of files",
            json!({ "pattern": "struct", "output_mode": "files_with_matches", "head_limit": 1 }),
            "src/cart.rs\n[cut: 1 of 2 files shown; use offset=1]",
        ),
        (
            "the end of a line of Windows",
            json!({ "pattern": "Money;$" }),
            "src/money.rs\n1:pub struct Money;",
        ),
        (
            "across lines",
            json!({ "pattern": "struct Cart \\{.*?\\}", "multiline": true }),
            "src/cart.rs\n3:pub struct Cart {\n4:    items: Vec<Item>,\n5:}",
        ),
        (
            "a line break in the pattern",
            json!({ "pattern": "Cart \\{\\n    items" }),
            "The pattern contains a line break, so it was searched across lines, as with multiline.\n\nsrc/cart.rs\n3:pub struct Cart {\n4:    items: Vec<Item>,",
        ),
        (
            "what is no expression",
            json!({ "pattern": "foo(bar" }),
            "`foo(bar` is not a regular expression (unclosed group); it was searched as plain text.\n\nnotes.txt\n2:foo(bar",
        ),
        ("nothing", json!({ "pattern": "nowhere" }), "No matches in 6 files."),
        (
            "what is binary",
            json!({ "pattern": "total", "path": "blob.bin" }),
            "`blob.bin` is no text.",
        ),
        (
            "the old form",
            json!({ "query": "TOTAL", "include_pattern": "*.rs", "exclude_pattern": "tests/**", "explanation": "x" }),
            "src/cart.rs\n8:    pub fn total(&self) {}",
        ),
        (
            "the old form with case",
            json!({ "query": "Total", "case_sensitive": true }),
            "tests/cart.rs\n1:fn Total() {}",
        ),
        (
            "an unknown mode",
            json!({ "pattern": "x", "output_mode": "json" }),
            "Error [TOOL_ARGUMENTS_INVALID]: unknown output mode `json`\nThe modes are content, files_with_matches and count.",
        ),
        (
            "an unknown place",
            json!({ "pattern": "x", "path": "nowhere" }),
            "Error [FILE_NOT_FOUND]: `nowhere` does not exist",
        ),
    ];
    for (name, given, expected) in cases {
        assert_eq!(run(&tree, given), expected, "{name}");
    }
}

#[test]
fn the_document_gets_the_matches() {
    let outcome = outcome(&shop(), json!({ "pattern": "impl", "-A": 1 })).expect("matches");
    assert_eq!(
        outcome.data,
        json!({
            "mode": "content",
            "matches": [
                { "filePath": "src/cart.rs", "line": 7, "text": "impl Cart {" },
                { "filePath": "src/money.rs", "line": 2, "text": "impl Money {}" },
            ],
            "matchCount": 2,
            "fileCount": 2,
            "truncated": false,
        })
    );
}

/// Pages follow one another without a gap, and each is the same every time.
#[test]
fn one_can_page_through_all_matches() {
    let content: String = (0..50).map(|it| format!("match {it}\n\nother\n")).collect();
    let names: Vec<_> = (0..20).map(|it| format!("d{}/f{it:02}", it % 3)).collect();
    let files: Vec<_> = names.iter().map(|it| (it.as_str(), content.as_bytes())).collect();
    let tree = Tree::new(&files);
    let page = |offset: usize, limit: usize| {
        let given = json!({ "pattern": "match", "offset": offset, "head_limit": limit, "-C": 1 });
        outcome(&tree, given).expect("a page")
    };
    let mut all = Vec::new();
    while all.len() < 1000 {
        let next = page(all.len(), 200);
        assert_eq!(next.is_truncated, all.len() + 200 < 1000);
        if next.is_truncated {
            let end = format!(
                "[cut: 200 of at least {} matches shown; use offset={}]",
                next.data["matchCount"],
                all.len() + 200
            );
            assert!(next.text.ends_with(&end), "{} does not end with {end}", next.text);
        }
        all.extend(next.data["matches"].as_array().expect("matches").clone());
    }
    let mut expected: Vec<_> = (0..20).map(|it| format!("d{}/f{it:02}", it % 3)).collect();
    expected.sort();
    let expected: Vec<_> = expected
        .iter()
        .flat_map(|file| {
            (0..50).map(move |it| json!({ "filePath": file, "line": it * 3 + 1, "text": format!("match {it}") }))
        })
        .collect();
    assert_eq!(all, expected);
    for (offset, limit) in [(0, 7), (49, 3), (50, 1), (123, 77), (990, 200)] {
        let part = page(offset, limit).data["matches"].clone();
        let end = (offset + limit).min(1000);
        assert_eq!(part, Value::from(expected[offset..end].to_vec()), "{offset} {limit}");
    }
}

#[test]
fn limits_hold_whatever_is_found() {
    let wide = format!("{}needle{}\n", "x".repeat(100_000), "\u{e9}".repeat(100_000));
    let lines = "needle and some more words to fill the line, as many as there are\n".repeat(100_000);
    let names: Vec<_> = (0..150).map(|it| format!("many/{it:03}")).collect();
    let mut files = vec![("wide", wide.as_bytes()), ("lines", lines.as_bytes())];
    files.extend(names.iter().map(|it| (it.as_str(), &b"needle\n"[..])));
    let tree = Tree::new(&files);
    for mode in ["content", "files_with_matches", "count"] {
        for multiline in [false, true] {
            let given = json!({ "pattern": "needle", "output_mode": mode, "-C": 99, "multiline": multiline });
            let outcome = outcome(&tree, given).expect("matches");
            assert!(
                outcome.is_truncated && outcome.text.len() <= (64 << 10) + 200,
                "{mode}: {}",
                outcome.text.len()
            );
        }
    }
    let wide = run(&tree, json!({ "pattern": "needle", "path": "wide" }));
    assert!(
        wide.starts_with(&format!("wide\n1:\u{2026} {}needle\u{e9}", "x".repeat(100))),
        "{wide}"
    );
    assert!(wide.ends_with("\u{e9} \u{2026} [a line of 300006 bytes]"), "{wide}");
    let files = outcome(&tree, json!({ "pattern": "needle", "path": "many" })).expect("matches");
    assert_eq!(files.data["matches"].as_array().map(Vec::len), Some(100));
    assert!(
        files
            .text
            .ends_with("[cut: 100 of at least 101 matches shown; use offset=100]"),
        "{}",
        files.text
    );
}

#[test]
fn links_are_not_followed() {
    let tree = shop();
    let outside = Tree::new(&[("secret", b"total\n")]);
    std::os::unix::fs::symlink(outside.folder.path(), tree.folder.path().join("link")).expect("a link");
    std::os::unix::fs::symlink(outside.folder.path().join("secret"), tree.folder.path().join("file")).expect("a link");
    let text = run(
        &tree,
        json!({ "pattern": "total", "output_mode": "files_with_matches" }),
    );
    assert_eq!(text, ".github/ci.yml\nnotes.txt\nsrc/cart.rs");
}

#[test]
fn a_search_that_nobody_waits_for_ends() {
    let tree = shop();
    let mut until = Until::done();
    until.set();
    let outcome = search(&tree.workspace, &input(&tool(), json!({ "pattern": "total" })), &until).expect("an outcome");
    assert!(outcome.is_truncated);
    assert!(
        outcome.text.contains("[cut: the search stopped after 10 s, 0 of "),
        "{}",
        outcome.text
    );
}

/// The output of ripgrep itself; `None` if it is not installed.
fn ripgrep(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("rg");
    command.current_dir(folder).stdin(Stdio::null());
    command.args([
        "--no-config",
        "--color=never",
        "--heading",
        "--with-filename",
        "--line-number",
        "--sort=path",
        "--hidden",
        "--glob=!.git",
    ]);
    let output = command
        .args(["--crlf", "--no-messages", "--no-require-git"])
        .args(arguments)
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

#[test]
fn ripgrep_prints_the_same() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools");
    let cases: [(&[&str], Value); 12] = [
        (
            &["fn \\w+_test|impl Sink"],
            json!({ "pattern": "fn \\w+_test|impl Sink" }),
        ),
        (&["-C2", "Outcome \\{$"], json!({ "pattern": "Outcome \\{$", "-C": 2 })),
        (&["-A3", "^pub fn tool"], json!({ "pattern": "^pub fn tool", "-A": 3 })),
        (&["-B4", "schema:"], json!({ "pattern": "schema:", "-B": 4 })),
        (
            &["-i", "-C1", "FILE_not_FOUND"],
            json!({ "pattern": "FILE_not_FOUND", "-i": true, "-C": 1 }),
        ),
        (&["-g", "*dir.rs", "fn"], json!({ "pattern": "fn", "glob": "*dir.rs" })),
        (
            &["-g", "!grep.rs", "-l", "Until"],
            json!({ "pattern": "Until", "glob": "!grep.rs", "output_mode": "files_with_matches" }),
        ),
        (
            &["-c", "--no-heading", "let"],
            json!({ "pattern": "let", "output_mode": "count" }),
        ),
        (
            &["-t", "rust", "-l", "serde_json"],
            json!({ "pattern": "serde_json", "type": "rust", "output_mode": "files_with_matches" }),
        ),
        (
            &["-U", "--multiline-dotall", "pub fn tool\\(\\).{20,90}aliases"],
            json!({ "pattern": "pub fn tool\\(\\).{20,90}aliases", "multiline": true }),
        ),
        (&["\\p{Greek}|\u{2026}"], json!({ "pattern": "\\p{Greek}|\u{2026}" })),
        (
            &["no such words anywhere, in \\d files"],
            json!({ "pattern": "no such words anywhere, in \\d files", "path": "." }),
        ),
    ];
    let tree = Tree::new(&[]);
    for file in std::fs::read_dir(own)
        .expect("a folder")
        .flatten()
        .filter(|it| it.path().is_file())
    {
        std::fs::copy(file.path(), tree.folder.path().join(file.file_name())).expect("a copy");
    }
    for (arguments, given) in cases {
        let mut arguments = arguments.to_vec();
        arguments.push("./");
        let Some(theirs) = ripgrep(tree.folder.path(), &arguments) else {
            // Past the capture of a test's output, which would swallow it.
            writeln!(std::io::stderr(), "\nSKIPPED: ripgrep_prints_the_same: there is no rg").ok();
            return;
        };
        let theirs: Vec<_> = theirs.lines().map(|it| it.strip_prefix("./").unwrap_or(it)).collect();
        let ours = outcome(&tree, given).expect("an outcome");
        // Long lines are cut by us only, and only we say that there is nothing.
        let is_comparable = |it: &str| it.len() <= MOST_CHARACTERS;
        assert!(theirs.iter().all(|it| is_comparable(it)));
        if theirs.is_empty() {
            assert!(ours.text.starts_with("No matches in "), "{arguments:?}: {}", ours.text);
        } else {
            assert!(!ours.is_truncated, "{arguments:?}: the case is too big");
            assert_eq!(ours.text.lines().collect::<Vec<_>>(), theirs, "{arguments:?}");
        }
    }
}
