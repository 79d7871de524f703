//! Mistyped commands and `sheaf help`, with the real binary.

use std::{path::Path, process::Command};

/// What the binary did: its exit code, standard output and standard error.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs the binary in an empty home, with no model to reach.
pub fn run(home: &Path, arguments: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_sheaf"))
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .current_dir(home)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it runs");
    Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_mistyped_command_is_refused_and_starts_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    for (arguments, near) in [
        (&["stauts"][..], "sheaf status"),
        (&["hlep"], "sheaf help"),
        (&["sesions", "list", "--all"], "sheaf sessions"),
        (&["modles", "--provider", "ollama"], "sheaf models"),
        (&["update"], "sheaf --version"),
        (&["version"], "sheaf --version"),
        (&["init"], "sheaf /init"),
    ] {
        let ran = run(home.path(), arguments);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(2), ""),
            "{arguments:?}: {}",
            ran.err
        );
        let hint = format!("did you mean `{near}`?");
        assert!(ran.err.contains(&hint), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(&format!("sheaf -- {}", arguments[0])), "{}", ran.err);
    }
    assert!(!home.path().join(".local").exists(), "nothing was stored");
}

#[test]
fn prose_is_a_prompt() {
    let home = tempfile::tempdir().expect("a folder");
    for arguments in [
        &["update", "the", "readme"][..],
        &["fix the stauts line"],
        &["-p", "stauts"],
        &["--", "stauts"],
        &["help", "me", "understand", "this"],
    ] {
        let ran = run(home.path(), arguments);
        // No model is configured, which is found out only after the line was read as a prompt.
        assert_eq!(ran.code, Some(1), "{arguments:?}: {}{}", ran.out, ran.err);
        assert!(!ran.err.contains("did you mean"), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn help_explains_a_command_as_its_flag_does() {
    let home = tempfile::tempdir().expect("a folder");
    for (help, flag) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "status"], &["status", "--help"]),
        (&["help", "config", "set"], &["config", "set", "--help"]),
    ] {
        let (word, flag) = (run(home.path(), help), run(home.path(), flag));
        assert_eq!(
            (word.code, word.out.is_empty()),
            (Some(0), false),
            "{help:?}: {}",
            word.err
        );
        assert_eq!(word.out, flag.out, "{help:?}");
    }
    let ran = run(home.path(), &["help", "stauts"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("did you mean `sheaf help status`?"), "{}", ran.err);
}

#[test]
fn redo_has_examples_of_its_own() {
    let home = tempfile::tempdir().expect("a folder");
    let [undo, redo] = ["undo", "redo"].map(|it| run(home.path(), &[it, "--help"]).out);
    assert!(
        undo.contains("sheaf undo last#7.3") && !undo.contains("sheaf redo"),
        "{undo}"
    );
    assert!(
        redo.contains("sheaf redo last#7.3") && !redo.contains("sheaf undo"),
        "{redo}"
    );
}

#[test]
fn flags_are_listed_only_where_they_have_an_effect() {
    let home = tempfile::tempdir().expect("a folder");
    for (command, listed, absent) in [
        (
            &["sessions"][..],
            &["--workspace", "--log"][..],
            &["--theme", "--sandbox"][..],
        ),
        (
            &["create-chat"],
            &["--workspace"],
            &["--model", "--provider", "--gateway", "--mode <", "--theme"],
        ),
        (
            &["models"],
            &["--provider", "--gateway"],
            &["--model ", "--mode <", "--theme", "--sandbox"],
        ),
        (&["doctor"], &["--theme", "--sandbox", "--model"], &["--mode <"]),
        (&["replay"], &["--theme", "--speed"], &["--sandbox"]),
        (&["sandbox", "run"], &["--network"], &["--theme", "--sandbox"]),
    ] {
        let help = run(home.path(), &[command, &["--help"]].concat()).out;
        for flag in listed {
            assert!(help.contains(flag), "{command:?} {flag}: {help}");
        }
        for flag in absent {
            assert!(!help.contains(flag), "{command:?} {flag}: {help}");
        }
    }
    // Scripts that give them anyway still work.
    assert_eq!(run(home.path(), &["config", "path", "--sandbox", "off"]).code, Some(2));
    assert_eq!(run(home.path(), &["config", "--sandbox", "off", "path"]).code, Some(0));
}

#[test]
fn a_folder_gets_a_page_for_each_command() {
    let home = tempfile::tempdir().expect("a folder");
    let pages = home.path().join("man/man1");
    let ran = run(home.path(), &["man", "--dir", &pages.to_string_lossy()]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
    for (name, word) in [
        ("sheaf.1", "stdout"),
        ("sheaf-serve.1", "HTTP"),
        ("sheaf-sessions.1", "conversations"),
        ("sheaf-sessions-export.1", "redact"),
        ("sheaf-redo.1", "Redo undone changes"),
    ] {
        let text = std::fs::read_to_string(pages.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(text.contains(word), "{name}: {text}");
    }
}

#[test]
fn code_is_found_by_what_it_is_about() {
    let home = tempfile::tempdir().expect("a folder");
    let files = [
        (
            "src/cart.rs",
            "/// What the customer pays.\npub fn total() -> u32 {\n    7\n}\n",
        ),
        ("src/mail.rs", "pub fn send() {}\n"),
        (".env", "CUSTOMER=pays\n"),
    ];
    std::fs::create_dir(home.path().join("src")).expect("a folder");
    for (path, text) in files {
        std::fs::write(home.path().join(path), text).expect("a file");
    }
    let found = run(home.path(), &["search", "how", "much", "do", "customers", "pay"]);
    assert_eq!(found.code, Some(0), "{}", found.err);
    assert_eq!(
        found.out,
        "src/cart.rs:1-4\n     1  /// What the customer pays.\n     2  pub fn total() -> u32 {\n     3      7\n     4  }\n"
    );
    let json = run(home.path(), &["search", "--json", "--in", "src", "customer"]);
    let value: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(value["chunks"][0]["filePath"], "src/cart.rs");
    let nothing = run(home.path(), &["search", "zebra"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(1), ""), "{}", nothing.err);
}
