//! Language servers in the real binary: what the model and the document of a change are told, and what becomes of servers
//! that hang or die.

use std::{fs, path::Path, process::Command};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{bench::Bench, say, until};

/// A workspace with two files of a language, whose server is the scripted one of this `kind`. `None`: there is no sandbox here,
/// without which no server starts.
fn bench(kind: &str) -> Option<Bench> {
    let bench = Bench::new(&[("a.fake", "fine\n"), ("b.fake", "import a\n"), ("c.fake", "a\n")]);
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lsp/server.sh");
    let settings = format!(
        "[lsp.fake]\ncommand = '{}'\nargs = ['{kind}', '{}']\nextensions = ['.fake']\n",
        server.display(),
        bench.path("mark").display(),
    );
    bench.write("home/.config/sheaf/config.toml", &settings);
    has_sandbox(&bench).then_some(bench)
}

/// Without a sandbox no language server starts.
fn has_sandbox(bench: &Bench) -> bool {
    let (_, code) = bench.run(&["sandbox", "run", "--", "true"]);
    if code != 0 {
        say("\nSKIPPED: there is no sandbox here, and without one no language server starts\n");
    }
    code == 0
}

/// A call that replaces the text of a file.
fn edit(file: &str, old: &str, new: &str) -> (&'static str, Value) {
    (
        "search_replace",
        json!({ "file_path": file, "old_string": old, "new_string": new }),
    )
}

/// Lets the model make these calls, one after the other. Returns their results, and what the documents say of checks.
fn calls(bench: &Bench, arguments: &[&str], calls: &[(&str, Value)]) -> (Vec<String>, Vec<Value>) {
    let steps: Vec<&[(&str, Value)]> = calls.iter().map(std::slice::from_ref).collect();
    steps_of(bench, arguments, &steps)
}

/// Lets the model make the calls of each step at once. Returns the same: of a document that is updated, each check that ended.
fn steps_of(bench: &Bench, arguments: &[&str], steps: &[&[(&str, Value)]]) -> (Vec<String>, Vec<Value>) {
    let arguments = [&["--output-format", "events"], arguments].concat();
    let (results, output) = bench.play(&arguments, steps);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let events = printed.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let checked = events.filter_map(|mut it| it["data"]["metadata"].get_mut("checked").map(Value::take));
    (results, checked.filter(|it| it["isPending"] != true).collect())
}

fn read(file: &str) -> (&'static str, Value) {
    ("read_file", json!({ "target_file": file }))
}

/// The processes that have been started for this bench.
fn servers(bench: &Bench) -> usize {
    let mark = bench.path("mark").display().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|it| fs::read_to_string(it.path().join("cmdline")).ok());
    lines.filter(|it| it.contains(&mark)).count()
}

/// There is time enough for everything, so that nothing depends on the machine.
const PATIENT: &[&str] = &["--trust", "--set", "agent.lint_wait=60s"];

#[test]
fn a_change_that_breaks_another_file_is_told_before_the_model_goes_on() {
    let Some(bench) = bench("good") else { return };
    let (results, checked) = calls(
        &bench,
        PATIENT,
        &[
            read("a.fake"),
            edit("a.fake", "fine", "broken"),
            edit("a.fake", "broken", "fine again"),
            ("read_lints", json!({ "paths": ["b.fake"] })),
        ],
    );
    assert!(
        results[1].contains("New lint errors in `a.fake`:\n1:1 error: it is broken (fake)"),
        "{results:?}"
    );
    assert!(
        results[1].contains("New lint errors in `b.fake`:\n1:1 error[7]: what it imports is broken"),
        "{results:?}"
    );
    assert!(!results[1].contains("c.fake"), "it imports nothing: {results:?}");
    assert!(!results[2].contains("lint"), "{results:?}");
    assert!(results[3].starts_with("No problems were found"), "{results:?}");
    let numbers = |it: &Value| (it["newProblems"].as_u64(), it["fixedProblems"].as_u64());
    let numbers: Vec<_> = checked.iter().map(numbers).collect();
    assert_eq!(numbers, [(Some(2), Some(0)), (Some(0), Some(2))], "{checked:?}");
    assert_eq!(checked[1]["unchecked"], json!([]));
    until("no server is left", || servers(&bench) == 0);
}

#[test]
fn who_mends_one_file_is_told_that_another_is_still_broken() {
    let Some(bench) = bench("good") else { return };
    let (results, checked) = calls(
        &bench,
        PATIENT,
        &[
            read("a.fake"),
            read("c.fake"),
            edit("a.fake", "fine", "broken"),
            edit("c.fake", "a", "broken"),
            edit("c.fake", "broken", "a"),
            edit("a.fake", "broken", "fine"),
        ],
    );
    let left = |file: &str| format!("Still there from an earlier change: 1 lint error in `{file}`.");
    assert!(results[4].contains(&left("a.fake")), "{results:?}");
    assert!(results[4].contains(&left("b.fake")), "{results:?}");
    assert!(
        !results[3].contains("Still there") && !results[5].contains("lint"),
        "{results:?}"
    );
    let numbers = |it: &Value| ["newProblems", "fixedProblems", "openProblems"].map(|name| it[name].as_u64());
    let numbers: Vec<_> = checked.iter().map(numbers).collect();
    let expected = [
        [Some(2), Some(0), None],
        [Some(1), Some(0), Some(2)],
        [Some(0), Some(1), Some(2)],
        [Some(0), Some(2), None],
    ];
    assert_eq!(numbers, expected, "{checked:?}");
}

#[test]
fn a_file_that_may_not_be_read_without_a_question_is_not_looked_at_because_it_imports_another() {
    let steps = [read("a.fake"), edit("a.fake", "fine", "broken")];
    for setting in [
        "[approvals]\nask = ['Read(b.fake)']\n",
        "[tools.read_lints]\nallowed_paths = ['a.fake']\n",
    ] {
        let Some(bench) = bench("good") else { return };
        let settings = bench.read("home/.config/sheaf/config.toml");
        bench.write("home/.config/sheaf/config.toml", &format!("{settings}{setting}"));
        let (results, _) = calls(&bench, PATIENT, &steps);
        assert!(
            results[1].contains("New lint errors in `a.fake`"),
            "{setting}: {results:?}"
        );
        assert!(!results[1].contains("b.fake"), "{setting}: {results:?}");
    }
}

#[test]
fn a_change_is_checked_only_if_something_has_looked_at_each_of_its_files() {
    let Some(bench) = bench("good") else { return };
    bench.write("work/a.py", "1\n");
    let first = [read("a.fake"), read("a.py")];
    let both = [edit("a.fake", "fine", "fine again"), edit("a.py", "1", "2")];
    let (results, checked) = steps_of(&bench, PATIENT, &[&first, &both]);
    let why = "nothing is configured that checks python (a.py)";
    assert!(results[3].contains(&format!("Not checked: {why}.")), "{results:?}");
    for it in &checked {
        assert_eq!((&it["isChecked"], &it["unchecked"]), (&json!(true), &json!([why])));
    }
    assert_eq!(checked.len(), 2);
}

#[test]
fn a_checker_that_finds_nothing_has_looked_at_the_change_and_what_it_says_no_more_is_fixed() {
    let Some(bench) = bench("good") else { return };
    bench.write("work/a.py", "short\n");
    let settings = bench.read("home/.config/sheaf/config.toml");
    let words = "grep -n short a.py | sed 's/^/a.py:/; s/short.*/ warning: too short/'";
    let lint = format!("[lint]\npython = ['sh', '-c', \"{words}\"]\n");
    bench.write("home/.config/sheaf/config.toml", &format!("{settings}{lint}"));
    let steps = [
        read("a.py"),
        ("read_lints", json!({ "paths": ["a.py"] })),
        edit("a.py", "short", "long"),
        edit("a.py", "long", "longer"),
    ];
    let (results, checked) = calls(&bench, PATIENT, &steps);
    assert_eq!(results[1], "a.py:1:1 warning: too short (python)");
    let check = |fixed: u64| {
        json!({
            "isPending": false, "isChecked": true, "newProblems": 0, "fixedProblems": fixed, "problems": [],
            "unchecked": [],
        })
    };
    assert_eq!(checked, [check(1), check(0)]);
}

#[test]
fn the_changes_of_a_step_are_judged_together() {
    let Some(bench) = bench("good") else { return };
    let first = [read("a.fake"), read("c.fake")];
    // What the first call breaks the second mends.
    let mended = [edit("a.fake", "fine", "broken"), edit("a.fake", "broken", "fine again")];
    let both = [edit("a.fake", "fine again", "broken"), edit("c.fake", "a", "b")];
    let (results, checked) = steps_of(&bench, PATIENT, &[&first, &mended, &both]);
    assert!(
        !results[2].contains("lint") && !results[3].contains("lint"),
        "{results:?}"
    );
    let clean = json!({
        "isPending": false, "isChecked": true, "newProblems": 0, "fixedProblems": 0, "problems": [], "unchecked": [],
    });
    assert_eq!(checked[..2], [clean.clone(), clean], "each of them says so");
    // Each has the problems of its own file, and the last one all the others.
    assert!(
        !results[4].contains("lint"),
        "the last call has the report: {results:?}"
    );
    assert!(
        results[5].contains("New lint errors in `a.fake`") && results[5].contains("New lint errors in `b.fake`"),
        "{results:?}"
    );
    let files = |it: &Value| {
        let problems = it["problems"].as_array().expect("a list").iter();
        problems
            .map(|it| it["filePath"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(files(&checked[2]), ["a.fake"]);
    assert_eq!(files(&checked[3]), ["b.fake"]);
}

#[test]
fn a_server_that_hangs_holds_up_no_other() {
    let Some(bench) = bench("good") else { return };
    bench.write("work/a.slow", "fine\n");
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lsp/server.sh");
    let settings = bench.read("home/.config/sheaf/config.toml");
    let slow = format!(
        "[lsp.slow]\ncommand = '{}'\nargs = ['hang', '{}']\nextensions = ['.slow']\n",
        server.display(),
        bench.path("mark").display(),
    );
    bench.write("home/.config/sheaf/config.toml", &format!("{settings}{slow}"));
    let first = [read("a.slow"), read("a.fake")];
    let both = [edit("a.slow", "fine", "broken"), edit("a.fake", "fine", "broken")];
    let wait = ["--trust", "--set", "agent.lint_wait=5s"];
    let (results, checked) = steps_of(&bench, &wait, &[&first, &both]);
    assert!(results[3].contains("New lint errors in `a.fake`"), "{results:?}");
    assert!(
        results[3].contains("Not checked: slow is still starting (a.slow)."),
        "{results:?}"
    );
    assert_eq!(checked[1]["isChecked"], true, "{checked:?}");
    assert_eq!(checked[1]["unchecked"], json!(["slow is still starting (a.slow)"]));
}

#[test]
fn what_others_change_is_told_to_servers_and_is_none_of_a_change() {
    let Some(bench) = bench("good") else { return };
    let breaks = (
        "run_terminal_cmd",
        json!({ "command": "echo broken > a.fake", "is_background": false }),
    );
    let steps = [
        read("a.fake"),
        read("b.fake"),
        breaks,
        edit("b.fake", "import a", "import a\n"),
    ];
    let (results, _) = calls(&bench, PATIENT, &steps);
    assert!(
        !results[3].contains("New lint errors"),
        "b.fake was broken before it: {results:?}"
    );
    // A change before it that no server looks at makes no difference.
    let other = ("write", json!({ "file_path": "a.py", "contents": "1\n" }));
    let together = [other, edit("b.fake", "import a\n", "import a")];
    for (name, text) in [("a.fake", "fine\n"), ("b.fake", "import a\n")] {
        bench.write(&format!("work/{name}"), text);
    }
    let steps: [&[_]; 3] = [&steps[..2], &steps[2..3], &together];
    let (results, _) = steps_of(&bench, PATIENT, &steps);
    assert!(!results[4].contains("New lint errors"), "{results:?}");
}

#[test]
fn a_server_finds_and_renames_a_symbol_and_leads_nobody_out_of_the_workspace() {
    let Some(bench) = bench("good") else { return };
    let symbol = |name: &str| json!({ "file_path": "b.fake", "line": 1, "symbol": name });
    let renamed = |new: &str| json!({ "file_path": "b.fake", "symbol": "a", "new_name": new });
    let (results, _) = calls(
        &bench,
        &["--trust"],
        &[
            ("find_references", symbol("a")),
            ("go_to_definition", symbol("nothing")),
            ("rename_symbol", renamed("outside")),
            ("rename_symbol", renamed("better")),
        ],
    );
    assert!(
        results[0].contains("b.fake:1: import a") && results[0].contains("/usr/lib/x:1:"),
        "{results:?}"
    );
    assert!(
        results[1].contains("`nothing` does not stand in `b.fake`"),
        "{results:?}"
    );
    assert!(results[2].contains("outside of the workspace"), "{results:?}");
    assert!(results[3].contains("Changed `b.fake`"), "{results:?}");
    assert_eq!(bench.read("work/b.fake"), "import better\n");
}

#[test]
fn a_server_that_hangs_holds_up_no_change_and_what_it_missed_is_looked_at_later() {
    let Some(bench) = bench("hang") else { return };
    let (results, checked) = calls(
        &bench,
        &["--trust"],
        &[read("a.fake"), edit("a.fake", "fine", "broken")],
    );
    assert!(!results[1].contains("lint"), "{results:?}");
    assert_eq!(
        checked[0]["unchecked"],
        json!(["fake is still starting (a.fake, b.fake)"])
    );
    until("no server is left", || servers(&bench) == 0);

    let bench = self::bench("late").expect("a sandbox, as before");
    let wait = ["--trust", "--set", "agent.lint_wait=1s"];
    let sleep = (
        "run_terminal_cmd",
        json!({ "command": "sleep 6", "is_background": false }),
    );
    let steps = [
        read("a.fake"),
        edit("a.fake", "fine", "broken"),
        sleep,
        read("c.fake"),
        edit("c.fake", "a", "b"),
    ];
    let (results, checked) = calls(&bench, &wait, &steps);
    assert!(!results[1].contains("lint"), "{results:?}");
    assert_eq!(
        checked[0]["unchecked"],
        json!(["fake is still reading the project (a.fake, b.fake)"])
    );
    assert!(
        results[4].contains("int errors in `a.fake`") && results[4].contains("int errors in `b.fake`"),
        "{results:?}"
    );
}

#[test]
fn a_server_that_keeps_dying_is_given_up() {
    let Some(bench) = bench("die") else { return };
    let steps = [
        read("a.fake"),
        edit("a.fake", "fine", "1"),
        edit("a.fake", "1", "2"),
        edit("a.fake", "2", "3"),
        edit("a.fake", "3", "4"),
        edit("a.fake", "4", "5"),
    ];
    let (_, checked) = calls(&bench, &["--trust"], &steps);
    let why = checked.last().expect("a check")["unchecked"].to_string();
    assert!(why.contains("fake is not running: it has ended 3 times"), "{why}");
}

#[test]
fn nothing_starts_in_a_folder_that_is_not_trusted_nor_where_it_is_switched_off() {
    let Some(bench) = bench("good") else { return };
    let steps = [
        read("a.fake"),
        edit("a.fake", "fine", "broken"),
        ("read_lints", json!({ "paths": ["a.fake"] })),
    ];
    let (results, checked) = calls(&bench, &[], &steps);
    assert_eq!(checked, Vec::<Value>::new());
    assert!(
        results[2].contains("WORKSPACE_UNTRUSTED") && results[2].contains("/trust"),
        "{results:?}"
    );
    bench.write("work/a.fake", "fine\n");
    let off = ["--trust", "--set", "agent.language_servers=false"];
    let (_, checked) = calls(&bench, &off, &steps);
    assert_eq!(checked, Vec::<Value>::new());
}

#[test]
fn no_server_outlives_the_program_that_is_killed() {
    let Some(bench) = bench("good") else { return };
    let mut child = bench.start("go", &["--trust"]);
    bench.model.asked().calls(&[read("a.fake")]);
    let asked = bench.model.asked();
    until("a server runs", || servers(&bench) > 0);
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    drop(asked);
    until("no server is left", || servers(&bench) == 0);
}

/// A real server, where it is installed: `pip install ty`.
#[test]
fn ty_sees_that_a_caller_is_broken() {
    let found = Command::new("sh")
        .args(["-c", "command -v ty"])
        .output()
        .expect("a shell");
    let program = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    if program.is_empty() {
        say("\nSKIPPED: a real language server: ty is not installed (pip install ty)\n");
        return;
    }
    let bench = Bench::new(&[
        ("pyproject.toml", "[project]\nname = 'shop'\nversion = '1'\n"),
        ("shop/__init__.py", ""),
        (
            "shop/cart.py",
            "def total(items: list[int]) -> int:\n    return sum(items)\n",
        ),
        ("app.py", "from shop.cart import total\n\nprint(total([1]))\n"),
    ]);
    bench.write(
        "home/.config/sheaf/config.toml",
        &format!("[lsp.ty]\ncommand = '{program}'\n[agent]\nlint_wait = '20s'\n"),
    );
    if !has_sandbox(&bench) {
        return;
    }
    let steps = [read("shop/cart.py"), edit("shop/cart.py", "def total(", "def sum_of(")];
    let renamed = json!({ "file_path": "shop/cart.py", "line": 1, "symbol": "sum_of", "new_name": "total" });
    let (results, _) = calls(
        &bench,
        &["--trust"],
        &[steps.as_slice(), &[("rename_symbol", renamed)]].concat(),
    );
    assert!(results[1].contains("int errors in `app.py`"), "{results:?}");
    assert!(bench.read("work/shop/cart.py").contains("def total("), "{results:?}");
}
