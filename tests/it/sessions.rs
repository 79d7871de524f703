//! `sheaf sessions` and `sheaf get`: what is kept is found again, taken out and taken in.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    model::{Model, Script},
    print::with_model,
};

struct Home(tempfile::TempDir);

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a folder"));
        std::fs::create_dir(home.shop()).expect("a folder");
        home
    }

    fn shop(&self) -> PathBuf {
        self.0.path().join("shop")
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.run_in(&self.shop(), arguments)
    }

    fn run_in(&self, folder: &Path, arguments: &[&str]) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_sheaf"))
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("HOME", self.0.path())
            .output()
            .expect("it runs");
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// Keeps the recorded tour; gives its id.
    fn tour(&self) -> String {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/tour/tour.jsonl");
        let ran = self.run(&["sessions", "import", file.to_str().expect("plain")]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.out.trim().to_owned()
    }
}

#[test]
fn conversations_are_listed_found_renamed_and_removed() {
    let home = Home::new();
    let ran = home.run(&["sessions", "list"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    assert!(ran.err.contains("no saved conversations"), "{}", ran.err);
    let (first, second) = (home.tour(), home.tour());
    let listed = |arguments: &[&str]| -> Vec<String> {
        let ran = home.run(arguments);
        ran.out.lines().map(|it| it[..36].to_owned()).collect()
    };
    assert_eq!(listed(&["sessions", "list"]).len(), 2);
    let ran = home.run_in(home.0.path(), &["sessions", "list"]);
    assert!(ran.out.is_empty() && ran.err.contains("--all"), "{}", ran.err);
    let ran = home.run_in(home.0.path(), &["sessions", "list", "--all", "--json"]);
    let objects: Vec<Value> = ran
        .out
        .lines()
        .map(|it| serde_json::from_str(it).expect("JSON"))
        .collect();
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0]["title"], "Discount codes");

    // A name that may be several is told, not guessed.
    let ran = home.run(&["sessions", "show", "discount codes"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains(&first) && ran.err.contains(&second), "{}", ran.err);
    assert_eq!(
        home.run(&["sessions", "rename", &first, "The  other one"]).code,
        Some(0)
    );
    let ran = home.run(&["sessions", "show", "the other one"]);
    assert!(ran.out.starts_with("# The other one\n"), "{}", ran.out);
    // The one with the newest answer stands first: a new name is none.
    assert_eq!(listed(&["sessions", "list"]), [second.clone(), first.clone()]);

    let ran = home.run(&["sessions", "rm", &second, "nobody"]);
    assert!(ran.code == Some(1) && ran.err.contains("`nobody`"), "{}", ran.err);
    assert_eq!(
        listed(&["sessions", "list"]).len(),
        2,
        "nothing is removed when a name is wrong"
    );
    let ran = home.run(&["sessions", "rm", &second]);
    assert!(
        ran.code == Some(2) && ran.err.contains("sheaf sessions rm --yes"),
        "sheaf cannot ask you here: {}",
        ran.err
    );
    assert_eq!(listed(&["sessions", "list"]).len(), 2);
    assert_eq!(home.run(&["sessions", "rm", "--yes", &second]).code, Some(0));
    assert_eq!(listed(&["sessions", "list"]), [first]);
}

#[test]
fn what_was_said_and_done_is_found_again() {
    let home = Home::new();
    let id = home.tour();
    let found = |query: &[&str]| -> (Option<i32>, Vec<String>) {
        let ran = home.run(&[&["sessions", "search"], query].concat());
        let address = |it: &str| it.split_whitespace().next().unwrap_or_default().replace(&id, "");
        (ran.code, ran.out.lines().map(address).collect())
    };
    for (query, expected) in [
        (
            vec!["type:command", "\"cargo test --test cart\""],
            vec!["#3.10", "#1.12"],
        ),
        (vec!["type:command exit!=0"], vec![]),
        (
            vec!["type:edit path:src/cart.rs"],
            vec!["#3.5", "#3.6", "#1.10", "#1.11"],
        ),
        (vec!["type:message", "\"one code per cart\""], vec!["#1"]),
        (vec!["type:reference", "Item::price"], vec!["#1.4"]),
    ] {
        let code = i32::from(expected.is_empty());
        let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(found(&query), (Some(code), expected), "{query:?}");
    }
    let ran = home.run(&[
        "sessions",
        "search",
        "--json",
        "type:command \"cargo test --test cart\"",
    ]);
    let object: Value = serde_json::from_str(ran.out.lines().next().expect("a line")).expect("JSON");
    assert_eq!(object["address"], format!("{id}#3.10"));
    assert_eq!(object["document"]["metadata"]["exitCode"], 0);
    let ran = home.run(&["sessions", "search", "type:nonsense"]);
    assert!(ran.code == Some(2) && ran.err.contains("kinds: text"), "{}", ran.err);
    let elsewhere = home.run_in(home.0.path(), &["sessions", "search", "cargo"]);
    assert_eq!(elsewhere.code, Some(1));
    let elsewhere = home.run_in(
        home.0.path(),
        &["sessions", "search", "--all", "type:command \"--test cart\""],
    );
    assert_eq!(elsewhere.out.lines().count(), 2);
}

#[test]
fn what_is_exported_comes_back_the_same() {
    let home = Home::new();
    let id = home.tour();
    let whole = home.run(&["sessions", "show", &id]).out;
    for form in ["json", "jsonl"] {
        let file = home.shop().join(format!("out.{form}"));
        let path = file.to_str().expect("plain");
        assert_eq!(home.run(&["sessions", "export", &id, "-o", path]).code, Some(0));
        let ran = home.run(&["sessions", "import", path]);
        assert_eq!(ran.code, Some(0), "{form}: {}", ran.err);
        let back = home.run(&["sessions", "show", ran.out.trim()]).out;
        assert_eq!(back, whole, "{form}");
        // And it can be played as it is.
        let played = home.run(&["replay", path, "-p", "--speed", "0"]);
        assert!(
            played.out.contains("all four tests pass"),
            "{form}: {}{}",
            played.out,
            played.err
        );
    }
    let page = home.run(&["sessions", "export", "last"]).out;
    assert!(page.starts_with("<!doctype html>") && page.contains("id=\"d1.4\""));
    let nothing = home.shop().join("nothing");
    std::fs::write(&nothing, "").expect("a file");
    let ran = home.run(&["sessions", "import", nothing.to_str().expect("plain")]);
    assert!(
        ran.code == Some(1) && ran.err.contains("contains no answer"),
        "{}",
        ran.err
    );
}

#[test]
fn a_document_is_had_by_its_address() {
    let home = Home::new();
    let id = home.tour();
    let ran = home.run(&["get", "1.4"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("pub fn total(&self) -> Money {"), "{}", ran.out);
    let ran = home.run_in(home.0.path(), &["get", &format!("{}#1.4", &id[..12]), "--as", "json"]);
    let object: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(object["metadata"]["filePath"], "src/cart.rs");

    // The patch is one that git takes.
    let patch = home.run(&["get", "1.11", "--as", "patch"]).out;
    std::fs::create_dir_all(home.shop().join("src")).expect("a folder");
    let old = patch
        .lines()
        .filter_map(|it| it.strip_prefix(' ').or(it.strip_prefix('-')));
    let body: Vec<&str> = old.filter(|it| !it.starts_with("-- ")).collect();
    let above = "x\n".repeat(20);
    std::fs::write(home.shop().join("src/cart.rs"), format!("{above}{}\n", body.join("\n"))).expect("a file");
    std::fs::write(home.shop().join("p"), &patch).expect("a file");
    let applied = Command::new("git")
        .args(["apply", "p"])
        .current_dir(home.shop())
        .output()
        .expect("git");
    assert!(
        applied.status.success(),
        "{patch}\n{}",
        String::from_utf8_lossy(&applied.stderr)
    );

    for (address, says) in [
        ("1.999", "no document 1.999"),
        ("x", "`x` is not an address"),
        ("nobody#1.1", "no conversation `nobody`"),
    ] {
        let ran = home.run(&["get", address]);
        assert!(ran.code == Some(1) && ran.err.contains(says), "{address}: {}", ran.err);
    }
    let ran = home.run(&["get", "1.4", "--as", "patch"]);
    assert!(ran.code == Some(1) && ran.err.contains("has no patch"), "{}", ran.err);
}

#[test]
fn a_line_tells_who_wrote_it() {
    let home = Home::new();
    let id = home.tour();
    let cart = home.shop().join("src/cart.rs");
    std::fs::create_dir_all(cart.parent().expect("a folder")).expect("a folder");
    // As the recording leaves it, with a line of the user's own.
    let new = |address: &str| home.run(&["get", address, "--as", "text"]).out;
    let text = format!("// mine\n{}{}{}", new("3.5"), "\n", new("3.6"));
    std::fs::write(&cart, &text).expect("a file");
    let line = text
        .lines()
        .position(|it| it.contains("Vec<Discount>"))
        .expect("the edit")
        + 1;
    let ran = home.run(&["why", &format!("src/cart.rs:{line}")]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.out.contains(&format!("{id}#3.5")) && ran.out.contains("Discount codes"),
        "{}",
        ran.out
    );
    let ran = home.run(&["why", "src/cart.rs:1"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("none of the 4 saved changes"),
        "{}",
        ran.err
    );
    for (place, says) in [
        ("src/cart.rs", "is not a file and line"),
        ("src/cart.rs:9999", "lines"),
        ("src/none.rs:1", "none.rs"),
    ] {
        let ran = home.run(&["why", place]);
        assert!(ran.code == Some(1) && ran.err.contains(says), "{place}: {}", ran.err);
    }
}

#[test]
fn what_is_out_of_the_way_is_not_listed_and_still_found() {
    let home = Home::new();
    let id = home.tour();
    assert_eq!(home.run(&["sessions", "archive", "discount codes"]).code, Some(0));
    assert!(home.run(&["sessions", "list"]).out.is_empty());
    let ran = home.run(&["sessions", "list", "--archived"]);
    assert!(ran.out.contains(&id) && ran.out.contains("(archived)"), "{}", ran.out);
    assert!(home.run(&["sessions", "search", "discount"]).out.contains(&id));
    assert_eq!(home.run(&["sessions", "show", "last"]).code, Some(1));
    assert_eq!(home.run(&["sessions", "unarchive", &id]).code, Some(0));
    assert!(home.run(&["sessions", "list"]).out.contains(&id));
}

/// What is missing from a conversation is said by everything that reads or continues it, once.
#[test]
fn damage_in_the_middle_is_said_without_a_screen() {
    let model = Model::with([Script::says("Yes.")]);
    let damaged =
        |id: &str| -> String { format!("1 line of this session cannot be read and was left out\n  session {id}\n") };
    for arguments in [
        &["sessions", "show", "last"][..],
        &["sessions", "show", "--tree", "last"],
        &["sessions", "export", "last"],
        &["sessions", "rename", "last", "Mine"],
        &["get", "1.1"],
        &["undo", "--dry-run"],
        &["why", "src/cart.rs:1"],
        &["-p", "--continue", "more"],
        &["-p", "--continue", "--no-session", "more"],
        &["-p", "--continue", "--fork", "more"],
    ] {
        let home = Home::new();
        let id = home.tour();
        let path = home.0.path().join(format!(".local/share/sheaf/sessions/{id}.jsonl"));
        let whole = std::fs::read_to_string(&path).expect("it is there");
        let mut lines: Vec<&str> = whole.lines().collect();
        lines[5] = "{\"v\":1,\"n\":5,";
        std::fs::write(&path, lines.join("\n") + "\n").expect("written");
        std::fs::create_dir(home.shop().join("src")).expect("a folder");
        std::fs::write(home.shop().join("src/cart.rs"), "//! A cart.\n").expect("written");
        let mut command = with_model(home.0.path(), &model);
        let output = command
            .args(arguments)
            .current_dir(home.shop())
            .output()
            .expect("it runs");
        let err = String::from_utf8(output.stderr).expect("text");
        assert_eq!(err.matches(&damaged(&id)).count(), 1, "{arguments:?}: {err}");
        assert_eq!(err.matches("cannot be read").count(), 1, "{arguments:?}: {err}");
    }
}

#[test]
fn a_doctor_says_what_is_wrong_and_mends_what_can_be() {
    let home = Home::new();
    let id = home.tour();
    let ran = home.run(&["sessions", "doctor"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "1 conversation checked: nothing is wrong\n")
    );
    let folder = home.0.path().join(".local/share/sheaf/sessions");
    let path = folder.join(format!("{id}.jsonl"));
    let whole = std::fs::read(&path).expect("it is there");
    // A torn end, a line in the middle that is damaged, a lock and a mark of nothing.
    let mut lines: Vec<Vec<u8>> = whole.split_inclusive(|it| *it == b'\n').map(<[u8]>::to_vec).collect();
    lines[5] = b"{\"v\":1,\"n\":5,\n".to_vec();
    lines.push(b"{\"v\":1,\"n\":99999,\"ev".to_vec());
    std::fs::write(&path, lines.concat()).expect("written");
    std::fs::write(folder.join("gone.lock"), "").expect("written");
    std::fs::write(folder.join("gone.archived"), "").expect("written");
    let kept = home.0.path().join(".local/state/sheaf/checkpoints/conv_gone/kept");
    std::fs::create_dir_all(&kept).expect("a folder");
    std::fs::write(kept.join("00"), "bytes").expect("written");
    let ran = home.run(&["sessions", "doctor"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    for part in [
        "its last 20 B cannot be read\n  --repair: move the end aside",
        "1 line in the middle cannot be read\n  they are left out, the rest is read",
        "gone.lock\n  belongs to no session\n  --repair: remove it",
        "gone.archived\n  belongs to no session",
        "checkpoints/conv_gone\n  5 B of undo data without a conversation",
    ] {
        assert!(ran.out.contains(part), "{part}:\n{}", ran.out);
    }
    let before = std::fs::read(&path).expect("it is there");
    let ran = home.run(&["sessions", "doctor", "--repair"]);
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    let after = std::fs::read(&path).expect("it is there");
    assert!(after.starts_with(&before[..before.len() - 20]) && !kept.exists());
    let ran = home.run(&["sessions", "doctor"]);
    assert!(
        ran.code == Some(0) && ran.out.contains("20 B unreadable, moved aside"),
        "{}",
        ran.out
    );
}
