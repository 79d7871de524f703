//! How much a tool gives is a setting, all over: each limit is made small, and seen.

use std::fs;

use sheaf::{
    config::{self, CommandLineSettings, Environment, SettingsFile},
    tools::{Context, Stop, arguments},
};

use super::*;

/// What a tool says under these settings.
async fn told(root: &Path, settings: &str, name: &str, given: &Value) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.toml");
    fs::write(&path, settings).expect("a file");
    let user = SettingsFile::read(&path)
        .expect("a file that can be read")
        .expect("it is there");
    let (settings, problems) = config::merge(
        Some(&user),
        None,
        &Environment::default(),
        &CommandLineSettings::default(),
    );
    assert!(problems.is_empty(), "{problems:?}");
    let context = Context {
        workspace: Arc::new(Workspace::open(root).expect("a folder")),
        seen: Arc::default(),
        index: Arc::default(),
        embeddings: std::sync::Arc::default(),
        findings: Arc::default(),
        servers: Arc::default(),
        skills: std::sync::Arc::default(),
        settings: Arc::new(settings),
        apply: None,
        call: String::new(),
        only_reads: false,
        output: tokio::sync::mpsc::unbounded_channel().0,
        stop: Stop::default(),
    };
    let tool = built_in().get(name).expect("a tool");
    let input = arguments::read(tool, Ok(given.as_object().expect("an object"))).expect("arguments");
    let (Work::Call { run, .. } | Work::Command { run, .. }) = &tool.work else {
        panic!("{name} is neither called nor run")
    };
    run(input, context).await.expect("a result").text
}

#[tokio::test]
async fn every_limit_of_a_result_is_a_setting() {
    let root = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(root.path().join(name), text).expect("a file");
    write("lines.txt", &"a line that is not long\n".repeat(100));
    for at in 0..5 {
        write(
            &format!("{at}.rs"),
            &format!("/// Counts sheep.\nfn count_sheep_{at}() {{}}\n").repeat(3),
        );
    }
    let read = json!({ "target_file": "lines.txt" });
    let grep = json!({ "pattern": "sheep", "glob": "*.rs" });
    let names = json!({ "pattern": "sheep", "output_mode": "files_with_matches" });
    let words = json!({ "query": "where are sheep counted", "target_directories": [] });
    let print = json!({ "command": "seq 1000" });
    for (name, given, settings, wanted) in [
        (
            "read_file",
            &read,
            "read_lines = 7",
            "[cut: 7 of 100 lines shown; use offset=8]",
        ),
        (
            "read_file",
            &read,
            "read_bytes = 1024",
            "of 100 lines shown; use offset=",
        ),
        (
            "read_file",
            &read,
            "line_characters = 6",
            "1|a line… [17 more characters]",
        ),
        ("grep", &grep, "grep_matches = 4", "[cut: 4 of at least "),
        ("grep", &grep, "grep_files = 2", "[cut: 12 of at least "),
        ("grep", &names, "grep_files = 2", "[cut: 2 of at least "),
        (
            "grep",
            &json!({ "pattern": "line" }),
            "grep_bytes = 1024",
            " matches shown; use offset=",
        ),
        (
            "glob_file_search",
            &json!({ "glob_pattern": "*.rs" }),
            "glob_files = 2",
            "[cut: 2 of 5 files shown",
        ),
        (
            "list_dir",
            &json!({ "target_directory": "." }),
            "list_entries = 3",
            "[cut: 3 of 6 entries shown",
        ),
        (
            "run_terminal_cmd",
            &print,
            "output_head = 1024\noutput_tail = 1024",
            "of 3892 bytes shown, the beginning and the end",
        ),
    ] {
        let plain = told(root.path(), "", name, given).await;
        assert!(!plain.contains(wanted), "{name}: {plain}");
        let text = told(root.path(), &format!("[limits]\n{settings}"), name, given).await;
        assert!(text.contains(wanted), "{name}, {settings}: {text}");
    }
    let chunks = |text: &str| text.lines().filter(|it| it.starts_with("```") && it.len() > 3).count();
    let many = chunks(&told(root.path(), "", "codebase_search", &words).await);
    let few = chunks(&told(root.path(), "[limits]\nsearch_chunks = 1", "codebase_search", &words).await);
    assert!(many > 1 && few == 1, "{many} {few}");
}
