//! What README, ARCHITECTURE, CONTRIBUTING and CHANGELOG say is true of the program.

use std::{collections::BTreeSet, path::Path, process::Command};

use crate::source::root;

fn paper(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("it is there")
}

/// The section under a heading, up to the next one of the same height.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).expect("a section");
    rest.split("\n## ").next().unwrap_or(rest)
}

/// The fenced blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let open = format!("```{language}\n");
    text.split(&open)
        .skip(1)
        .filter_map(|it| it.split("\n```").next())
        .collect()
}

/// What stands between backticks on a line.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.lines()
        .filter(|it| !it.starts_with("```"))
        .flat_map(|it| it.split('`').skip(1).step_by(2))
        .collect()
}

/// What `sheaf` prints with these arguments.
fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sheaf")).args(arguments).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn completions_and_the_manual_know_every_command_and_option() {
    let papers = [
        vec!["completions", "bash"],
        vec!["completions", "zsh"],
        vec!["completions", "fish"],
        vec!["man"],
    ];
    for arguments in papers {
        let text = printed(&arguments).replace("\\-", "-");
        for word in [
            "replay",
            "serve",
            "tour",
            "doctor",
            "config",
            "sandbox",
            "output-format",
            "max-turns",
        ] {
            assert!(text.contains(word), "{arguments:?}: {word}");
        }
    }
    // The shell itself has to read what is meant for it.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sheaf.bash");
    std::fs::write(&file, printed(&["completions", "bash"])).expect("a file");
    let script = format!(
        "source {}; COMP_WORDS=(sheaf --mode ''); COMP_CWORD=2; _sheaf sheaf '' --mode; echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let output = Command::new("/bin/bash")
        .args(["--norc", "-c", &script])
        .output()
        .expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "agent plan ask debug");
}

/// Everything that `--help` says, of the program and of its subcommands.
fn help() -> String {
    let tasks = [
        "",
        "conform",
        "replay",
        "serve",
        "tour",
        "doctor",
        "config",
        "config set",
        "sessions",
        "sessions list",
        "sessions export",
        "sessions doctor",
        "get",
        "why",
        "sessions show",
        "sessions doctor",
        "undo",
        "redo",
        "rewind",
    ];
    let texts = tasks.map(|task| {
        let output = Command::new(env!("CARGO_BIN_EXE_sheaf"))
            .args(task.split_whitespace())
            .arg("--help")
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{task}");
        String::from_utf8(output.stdout).expect("text")
    });
    texts.join("\n")
}

#[test]
fn setting_up_takes_exactly_two_commands() {
    let readme = paper("README.md");
    let set_up = section(&readme, "Set up");
    assert_eq!(blocks(set_up, "sh"), ["cargo run --release", "cargo test"]);
    // What they need stands above them.
    let first = set_up.find("```").expect("a block");
    for needed in ["Rust 1.95", "`gcc`", "`libc6-dev`"] {
        assert!(set_up.find(needed).is_some_and(|it| it < first), "{needed}");
    }
    let rust = format!("rust-version = \"{}\"", "1.95");
    assert!(paper("Cargo.toml").contains(&rust));
}

#[test]
fn commands_and_options_are_known() {
    let help = help();
    let known: BTreeSet<_> = help
        .split(|it: char| !(it.is_ascii_alphanumeric() || it == '-'))
        .filter(|it| it.starts_with('-'))
        .collect();
    for name in ["README.md", "CHANGELOG.md"] {
        let text = paper(name);
        let commands = blocks(&text, "sh").join("\n");
        let commands: Vec<_> = commands
            .lines()
            .chain(quoted(&text))
            .filter(|it| it.contains("sheaf "))
            .collect();
        assert!(commands.len() > 5, "{name}");
        for command in commands {
            let (_, words) = command.split_once("sheaf ").expect("looked for");
            let words = words.split(" #").next().unwrap_or_default();
            for option in words
                .split_whitespace()
                .filter(|it| it.starts_with('-') && it.len() > 1)
            {
                assert!(known.contains(option), "{name}: {command}");
            }
        }
        for option in quoted(&text).into_iter().filter(|it| it.starts_with("--")) {
            let word = option.split_whitespace().next().unwrap_or(option);
            assert!(known.contains(word), "{name}: {option}");
        }
    }
}

#[test]
fn slash_commands_and_variables_are_known() {
    let readme = paper("README.md");
    for word in quoted(section(&readme, "Keys"))
        .into_iter()
        .filter_map(|it| it.strip_prefix('/'))
    {
        // What follows the name is its argument.
        let name = word.split(' ').next().unwrap_or_default();
        let known = sheaf::tui::actions::ACTIONS.iter().any(|it| it.slash == name);
        assert!(known, "/{word}");
    }
    let reference = sheaf::config::reference();
    let help = help();
    let is_known = |name: &str| reference.contains(name) || help.contains(name);
    let names = readme.split(|it: char| !(it.is_ascii_uppercase() || it == '_'));
    for name in names.filter(|it| it.starts_with("SHEAF_") || it.starts_with("OPENAI_")) {
        assert!(is_known(name), "{name}");
    }
}

#[test]
fn the_sample_configuration_is_right() {
    let readme = paper("README.md");
    let [sample] = blocks(&readme, "toml")[..] else {
        panic!("one sample")
    };
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".config/sheaf");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("config.toml"), sample).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_sheaf"))
        .args(["config", "explain"])
        .env_clear()
        .env("HOME", home.path())
        .output()
        .expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(said.contains("providers.local.model = \"qwen3\""), "{said}");
}

#[test]
fn files_that_are_named_are_there() {
    let root = root();
    let is_there = |name: &str| {
        let places = ["", "src", "tests/it", "src/tui", "src/serve"];
        places.iter().any(|it| root.join(it).join(name).exists())
    };
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = paper(name);
        let links = text.split("](").skip(1).filter_map(|it| it.split(')').next());
        for link in links.filter(|it| !it.contains("://")) {
            assert!(is_there(link), "{name}: {link}");
        }
        // A pattern or a path of the user's is no file of ours.
        let paths = quoted(&text).into_iter().filter(|it| {
            let is_ours = Path::new(it).extension().is_some_and(|it| it == "rs")
                || ["src/", "tests/", "benches/", "assets/", "themes/"]
                    .iter()
                    .any(|start| it.starts_with(start));
            is_ours && !it.contains(['<', ' ', '$', '*'])
        });
        for path in paths {
            assert!(is_there(path), "{name}: {path}");
        }
    }
    let lines = paper("ARCHITECTURE.md").lines().count();
    assert!(lines <= 250, "{lines}");
}

#[test]
fn the_changelog_knows_this_version() {
    let heading = format!("\n## [{}]", env!("CARGO_PKG_VERSION"));
    assert!(paper("CHANGELOG.md").contains(&heading));
}

#[test]
fn the_tree_in_the_architecture_names_every_module() {
    let architecture = paper("ARCHITECTURE.md");
    let tree = section(&architecture, "The tree");
    let named: BTreeSet<_> = tree
        .lines()
        .filter_map(|it| it.strip_prefix("  ")?.split_once('/'))
        .map(|(name, _)| name.to_owned())
        .filter(|it| it.chars().all(|it| it.is_ascii_lowercase()))
        .collect();
    let there: BTreeSet<_> = std::fs::read_dir(root().join("src"))
        .expect("a folder")
        .flatten()
        .filter(|it| it.path().is_dir())
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(named, there);
}
