use std::{fs, sync::Arc};

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use tokio::sync::mpsc;

use super::{super::lints::diagnostic::read, *};
use crate::{
    config::Settings,
    sandbox::{Fence, Seen},
    tools::Stop,
};

fn lines(found: &[Diagnostic]) -> Vec<String> {
    found
        .iter()
        .map(|it| {
            let code = it.code.as_deref().unwrap_or("-");
            let place = format!("{}:{}:{}", it.file.display(), it.line, it.column);
            format!("{place} {} {code} {} ({})", it.severity.as_str(), it.message, it.source)
        })
        .collect()
}

#[test]
fn what_checkers_really_print_is_read() {
    // Recorded from cargo 1.95, tsc 7.0, eslint 10.15 and ruff 0.17, with the folder renamed.
    for (source, output, expected) in [
        (
            "cargo check",
            include_str!("../../../tests/fixtures/lints/cargo.txt"),
            &[
                "src/main.rs:2:18 error E0308 mismatched types: expected `u32`, found `&str` (rustc)",
                "src/main.rs:3:5 error E0425 cannot find function `missing` in this scope: not found in this scope (rustc)",
                "src/main.rs:2:9 warning unused_variables unused variable: `unused` (rustc)",
            ][..],
        ),
        (
            "tsc",
            include_str!("../../../tests/fixtures/lints/tsc.txt"),
            &[
                "src/a.ts:1:7 error TS2322 Type 'string' is not assignable to type 'number'. (tsc)",
                "src/a.ts:3:52 error TS2339 Property 'size' does not exist on type 'Shape'. (tsc)",
                "src/a.ts:4:7 error TS2741 Property 'name' is missing in type '{ side: number; }' but required in type 'Shape'. (tsc)",
                "src/a.ts:5:14 error TS2554 Expected 1 arguments, but got 2. (tsc)",
            ],
        ),
        (
            "eslint",
            include_str!("../../../tests/fixtures/lints/eslint.json"),
            &[
                "/w/src/b.js:1:7 warning no-unused-vars 'a' is assigned a value but never used. (eslint)",
                "/w/src/b.js:2:1 error no-undef 'missing' is not defined. (eslint)",
                "/w/src/c.js:1:1 error - Parsing error: The keyword 'let' is reserved (eslint)",
            ],
        ),
        (
            "ruff",
            include_str!("../../../tests/fixtures/lints/ruff.json"),
            &[
                "/w/d.py:1:1 error I001 Import block is un-sorted or un-formatted (ruff)",
                "/w/d.py:1:8 error F401 `os` imported but unused (ruff)",
                "/w/d.py:2:7 error F821 Undefined name `undefined` (ruff)",
                "/w/e.py:1:7 error - Expected a parameter or the end of the parameter list (ruff)",
                "/w/e.py:2:1 error - unexpected EOF while parsing (ruff)",
            ],
        ),
        // Written after the documentation of these programs.
        (
            "go vet",
            "# example.com/shop\n./cart.go:5:2: undefined: total\nvet: ./cart.go:7:9: result of fmt.Sprintf call not used\nexit status 1\n",
            &[
                "./cart.go:5:2 error - undefined: total (go vet)",
                "./cart.go:7:9 error - result of fmt.Sprintf call not used (go vet)",
            ],
        ),
        (
            "gcc",
            "a.c: In function 'main':\na.c:3:5: warning: unused variable 'x' [-Wunused-variable]\na.c:4:1: fatal error: no.h: No such file\na.sh:7: note: quote this\n  --> a.rs:1:9\n12:30:00 finished at 10:20\nhttp://x.example:80/: hm\n",
            &[
                "a.c:3:5 warning - unused variable 'x' [-Wunused-variable] (gcc)",
                "a.c:4:1 error - no.h: No such file (gcc)",
                "a.sh:7:1 info - quote this (gcc)",
            ],
        ),
        ("none", "All checks passed!\n[]\n", &[]),
    ] {
        assert_eq!(lines(&read(source, output)), expected, "{source}");
    }
}

fn files(root: &Path, names: &[&str]) -> BTreeSet<PathBuf> {
    for name in names {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    names.iter().map(|it| root.join(it)).collect()
}

#[test]
fn each_language_has_its_checker_where_its_marker_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    files(
        &root,
        &[
            "Cargo.toml",
            "Cargo.lock",
            "web/tsconfig.json",
            "web/eslint.config.mjs",
            "web/node_modules/.bin/tsc",
            "py/pyproject.toml",
            "go.mod",
        ],
    );
    let found = files(
        &root,
        &[
            "src/main.rs",
            "src/lib.rs",
            "web/src/a b.ts",
            "web/src/c.tsx",
            "py/x.py",
            "cmd/m.go",
            "lone/y.py",
            "README.md",
        ],
    );
    let plan = jobs(&root, &found, &BTreeMap::new(), &|it| it != "go");
    let shown: Vec<_> = plan
        .jobs
        .iter()
        .map(|it| {
            let inner = it.directory.strip_prefix(&root).unwrap().display();
            format!("{inner} | {}", it.line.replace(&root.display().to_string(), "ROOT"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "py | ruff check --no-cache --output-format json ./x.py",
            " | CARGO_TARGET_DIR=\"$TMPDIR/cargo\" cargo check --quiet --all-targets --message-format=json",
            "web | ROOT/web/node_modules/.bin/tsc --noEmit --pretty false -p .",
            "web | eslint --format json ./src/c.tsx './src/a b.ts'",
        ]
    );
    // Without a lock cargo would write one, and the folder is read-only: it is run among links.
    fs::remove_file(root.join("Cargo.lock")).unwrap();
    let unlocked = jobs(&root, &found, &BTreeMap::new(), &|it| it == "cargo");
    let line = &unlocked.jobs[0].line;
    assert!(line.starts_with("at=\"$TMPDIR/unlocked$PWD\" && mkdir -p"), "{line}");
    assert!(
        line.ends_with("cargo check --quiet --all-targets --message-format=json"),
        "{line}"
    );
    let absent: Vec<_> = plan.unchecked().into_iter().collect();
    assert_eq!(
        absent,
        ["go is not installed", "nothing is configured that checks markdown"]
    );

    let words = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let configured = BTreeMap::from([
        ("rust".to_owned(), words(&["sh", "-c", "cargo clippy | cat"])),
        ("python".to_owned(), words(&["my lint", "--x='y' z"])),
    ]);
    let plan = jobs(&root, &found, &configured, &|_| false);
    let lines: Vec<_> = plan.jobs.iter().map(|it| it.line.as_str()).collect();
    assert_eq!(lines[..2], [r"'my lint' '--x='\''y'\'' z'", "cargo clippy | cat"]);
}

struct Bench {
    folder: tempfile::TempDir,
    context: Context,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("shop");
        fs::create_dir_all(&root).unwrap();
        let fence = Fence {
            passed: settings.sandbox.environment.clone(),
            ..Fence::default()
        };
        let context = Context {
            workspace: Arc::new(Workspace::fenced(&root, fence).unwrap()),
            seen: Arc::new(Seen::default()),
            index: Arc::default(),
            embeddings: Arc::default(),
            findings: Arc::default(),
            servers: Arc::default(),
            skills: Arc::default(),
            settings: Arc::new(settings),
            apply: None,
            call: "call".to_owned(),
            only_reads: false,
            output: mpsc::unbounded_channel().0,
            stop: Stop::default(),
        };
        Self { folder, context }
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.folder.path().join("shop").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn call(&self, paths: &[&str]) -> Result<Outcome, Fault> {
        let input = json!({ "paths": paths });
        run(Input(input.as_object().cloned().unwrap()), self.context.clone()).await
    }
}

#[tokio::test]
async fn a_crate_is_really_checked() {
    let cargo = std::process::Command::new("cargo").arg("--version").output();
    if !cargo.is_ok_and(|it| it.status.success()) {
        // Past the harness, which would swallow it.
        let why = b"\nSKIPPED: a_crate_is_really_checked: cargo cannot be started here\n";
        std::io::Write::write_all(&mut std::io::stderr(), why).ok();
        return;
    }
    let bench = Bench::new(Settings::default());
    bench.put(
        "Cargo.toml",
        "[package]\nname = 'shop'\nversion = '0.1.0'\nedition = '2024'\n[workspace]\n",
    );
    bench.put(
        "src/main.rs",
        "mod cart;\nfn main() {\n    let x: u32 = \"three\";\n}\n",
    );
    bench.put("src/cart.rs", "pub fn f() { nothing() }\n");
    let outcome = bench.call(&["src/main.rs"]).await.unwrap();
    assert_eq!(
        outcome.text,
        "src/main.rs:3:18 error[E0308]: mismatched types: expected `u32`, found `&str` (rustc)\n\
         Errors in other files: 1 in src/cart.rs."
    );
    assert_eq!(
        outcome.data,
        json!({
            "fileDiagnostics": [{ "filePath": "src/main.rs", "diagnostics": [{
                "line": 3, "column": 18, "severity": "error", "message": "mismatched types: expected `u32`, found `&str`",
                "source": "rustc", "code": "E0308",
            }]}],
            "available": true,
            "failedCheckers": 0,
        })
    );
    assert!(!bench.folder.path().join("shop/target").exists());
    // The files that the agent changed are the ones that are meant.
    let cart = bench.context.workspace.locate("src/cart.rs").unwrap();
    bench.context.seen.wrote(&cart, Some(b"x"));
    let outcome = bench.call(&[]).await.unwrap();
    assert!(
        outcome.text.starts_with("src/cart.rs:1:14 error[E0425]"),
        "{}",
        outcome.text
    );
    bench.put("src/main.rs", "mod cart;\nfn main() { cart::f() }\n");
    bench.put("src/cart.rs", "pub fn f() {}\n");
    assert_eq!(bench.call(&["src"]).await.unwrap().text, "No problems were found.");
    let manifest = fs::read_to_string(bench.folder.path().join("shop/Cargo.toml")).unwrap();
    bench.put("Cargo.toml", "[package");
    let outcome = bench.call(&["src"]).await.unwrap();
    assert!(
        outcome.text.starts_with("`cargo check` did not work (exit code 101):"),
        "{}",
        outcome.text
    );
    assert_eq!(outcome.data["available"], false);
    // What failed has found nothing, rather than that there is nothing.
    let cart = bench.context.workspace.locate("src/cart.rs").unwrap().path;
    let stands = |it: &Bench| {
        it.context
            .findings
            .standing(&cart)
            .values()
            .map(Vec::len)
            .sum::<usize>()
    };
    bench.put("Cargo.toml", &manifest);
    bench.put("src/cart.rs", "pub fn f() { missing() }\n");
    bench.call(&["src"]).await.unwrap();
    let before = stands(&bench);
    assert!(before > 0);
    bench.put("Cargo.toml", "[package");
    bench.call(&["src"]).await.unwrap();
    assert_eq!(stands(&bench), before);
}

#[tokio::test]
async fn what_cannot_be_checked_is_said_and_is_no_failure() {
    let bench = Bench::new(Settings::default());
    bench.put("notes.md", "");
    bench.put(".env", "");
    let outcome = bench.call(&["notes.md"]).await.unwrap();
    assert!(
        outcome.text.contains("nothing is configured that checks markdown"),
        "{}",
        outcome.text
    );
    assert_eq!(outcome.data, json!({ "fileDiagnostics": [], "available": false }));
    let outcome = bench.call(&[]).await.unwrap();
    assert!(outcome.text.starts_with("No file was changed"), "{}", outcome.text);
    for (path, code) in [
        ("absent.rs", "FILE_NOT_FOUND"),
        (".env", "IGNORED_FILE"),
        ("..", "PATH_OUTSIDE_WORKSPACE"),
    ] {
        assert_eq!(bench.call(&[path]).await.unwrap_err().code, code);
    }
}

#[tokio::test]
async fn a_configured_command_is_judged_as_what_it_is() {
    let mut settings = Settings::default();
    let words = ["sh", "-c", "echo 'notes.md:2: warning: too short'"].map(str::to_owned);
    settings.lint.insert("markdown".to_owned(), words.to_vec());
    let bench = Bench::new(settings);
    bench.put("notes.md", "");
    let refused = bench.call(&["notes.md"]).await;
    let input = json!({ "paths": ["notes.md"] });
    let judged = touches(&Input(input.as_object().cloned().unwrap()), &bench.context);
    assert_eq!(judged.unwrap_err().code, "WORKSPACE_UNTRUSTED", "{refused:?}");
    bench.context.workspace.let_act();
    let outcome = bench.call(&["notes.md"]).await.unwrap();
    assert_eq!(outcome.text, "notes.md:2:1 warning: too short (markdown)");
    let input = json!({ "paths": ["notes.md"] });
    let touched = touches(&Input(input.as_object().cloned().unwrap()), &bench.context).unwrap();
    let line = "echo 'notes.md:2: warning: too short'";
    assert!(
        matches!(&touched[..], [Access::Command { line: it, .. }] if it == line),
        "{touched:?}"
    );
}

#[tokio::test]
async fn what_runs_by_itself_runs_only_where_it_may_and_what_it_found_is_kept() {
    let mut settings = Settings::default();
    let words = ["sh", "-c", "echo 'notes.md:2: warning: too short'"].map(str::to_owned);
    settings.lint.insert("markdown".to_owned(), words.to_vec());
    let bench = Bench::new(settings);
    bench.put("notes.md", "one\ntwo\n");
    bench.put(
        "Cargo.toml",
        "[package]\nname = 'shop'\nversion = '0.1.0'\n[workspace]\n",
    );
    bench.put("src/lib.rs", "nothing\n");
    let root = bench.context.workspace.root().to_owned();
    let files: BTreeSet<_> = ["notes.md", "src/lib.rs"].iter().map(|it| root.join(it)).collect();
    let found = || {
        let found = bench.context.findings.of(&|_| true);
        lines(&found)
            .iter()
            .map(|it| it.replace(&format!("{}/", root.display()), ""))
            .collect::<Vec<_>>()
    };
    // Nobody has said that the workspace may act.
    look_again(&files, true, &bench.context).await;
    assert_eq!(found(), Vec::<String>::new());
    bench.context.workspace.let_act();
    // The user's own command waits for a change, and what builds a project for the model to ask for it.
    look_again(&files, false, &bench.context).await;
    assert_eq!(found(), Vec::<String>::new());
    if Commands::tier() != Tier::None {
        look_again(&files, true, &bench.context).await;
        assert_eq!(found(), ["notes.md:2:1 warning - too short (markdown)"]);
    }
    // What the model asks for is kept as well.
    let outcome = bench.call(&["notes.md"]).await.unwrap();
    assert_eq!(outcome.text, "notes.md:2:1 warning: too short (markdown)");
    assert_eq!(found(), ["notes.md:2:1 warning - too short (markdown)"]);
}

#[test]
fn only_the_names_that_are_listed_are_looked_up() {
    let count = std::cell::Cell::new(0);
    let name = |it: &u32| {
        count.set(count.get() + 1);
        format!("{it}.py")
    };
    let text = listed(&(1..=160).collect::<Vec<_>>(), name);
    assert_eq!(text, "1.py, 2.py, 3.py, 4.py, 5.py and 155 more");
    assert_eq!(count.get(), 5);
    assert_eq!(listed(&[1], name), "1.py");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_output_is_read_without_harm(text in "(\\PC|[a-z./:(),\n\\[\\]{}\"0-9 ]){0,120}") {
        read("x", &text);
    }
}
