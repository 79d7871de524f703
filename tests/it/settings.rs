//! `sheaf doctor` and `sheaf config` as they are run: what they write, how they exit, what they leave alone.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

/// Runs the program with nothing of this machine's own settings.
fn doctor(home: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sheaf"))
        .arg("doctor")
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("TERM", "xterm-256color")
        .envs(variables.iter().copied())
        .output()
        .expect("it runs")
}

fn configured(text: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".config/sheaf");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("config.toml"), text).expect("written");
    home
}

fn checks(output: &Output) -> Vec<(String, String, String, String)> {
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |it: &Value, name: &str| it[name].as_str().expect("a text").to_owned();
    let checks = json["checks"].as_array().expect("a list").iter();
    checks
        .map(|it| {
            (
                text(it, "topic"),
                text(it, "name"),
                text(it, "verdict"),
                text(it, "seen"),
            )
        })
        .collect()
}

#[test]
fn a_new_home_has_no_problem_and_stays_as_it_is() {
    let home = tempfile::tempdir().expect("a folder");
    let output = doctor(home.path(), &["--json"], &[]);
    let checks = checks(&output);
    for topic in ["terminal", "keys", "configuration", "folders", "network", "models"] {
        assert!(checks.iter().any(|it| it.0 == topic), "{topic}: {checks:?}");
    }
    // Whether this machine has certificates is not ours to say.
    let bad: Vec<_> = checks.iter().filter(|it| it.2 == "bad" && it.0 != "network").collect();
    assert!(bad.is_empty(), "{bad:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let left = std::fs::read_dir(home.path()).expect("readable").count();
    assert_eq!(left, 0, "looking makes no folder");
}

#[test]
fn a_wrong_key_is_named_and_fails() {
    let home = configured("them = 'owl'\n");
    let output = doctor(home.path(), &[], &[]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("config.toml:1:1: unknown key `them`"), "{text}");
    assert!(text.contains("→ did you mean `theme`?"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn keys_are_used_and_never_shown() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|it| it.local_addr())
        .expect("a port");
    let home = configured("[providers.openai]\nkey_command = 'echo sk-from-command'\n");
    let url = format!("http://{closed}/v1");
    let variables = [
        ("OPENAI_BASE_URL", url.as_str()),
        ("SHEAF_TOKEN", "sk-from-variable"),
        ("HTTPS_PROXY", "http://me:sk-from-proxy@127.0.0.1:9"),
    ];
    for arguments in [&["--json"] as &[&str], &[]] {
        let output = doctor(home.path(), arguments, &variables);
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(!text.contains("sk-from"), "{text}");
        assert!(
            text.contains("from its command") && text.contains("connection refused"),
            "{text}"
        );
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_setting_that_is_set_holds_in_the_next_run() {
    let home = configured("# mine\nmouse = false # always\n");
    let config = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sheaf"))
            .arg("config")
            .args(arguments)
            .env_clear()
            .env("HOME", home.path())
            .output()
            .expect("it runs");
        let text = |it: Vec<u8>| String::from_utf8(it).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let quiet = |out: &str| (Some(0), out.to_owned(), String::new());
    assert_eq!(config(&["set", "ui.output_rows", "7"]), quiet(""));
    assert_eq!(config(&["get", "ui.output_rows"]), quiet("7\n"));
    assert_eq!(config(&["set", "ui.output_rows"]), quiet(""));
    assert_eq!(config(&["get", "ui.output_rows"]), quiet("8\n"));
    let (code, _, told) = config(&["set", "them", "owl"]);
    assert_eq!(code, Some(1));
    assert!(
        told.contains("unknown key `them`") && told.contains("did you mean `theme`?"),
        "{told}"
    );
    let file = std::fs::read_to_string(home.path().join(".config/sheaf/config.toml")).expect("readable");
    assert!(file.starts_with("# mine\nmouse = false # always\n"), "{file}");
}
