//! What README, ARCHITECTURE, CONTRIBUTING and CHANGELOG say is true of the program.

use std::{collections::BTreeSet, os::unix::fs::PermissionsExt, path::Path, process::Command};

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
            "login",
            "logout",
            "config",
            "sandbox",
            "output-format",
            "max-turns",
        ] {
            assert!(text.contains(word), "{arguments:?}: {word}");
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().to_str().expect("it is text");
    printed(&["man", "--dir", pages]);
    for page in ["sheaf-man.1", "sheaf-completions.1", "sheaf-config-set.1"] {
        assert!(folder.path().join(page).is_file(), "{page}");
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
        "login",
        "logout",
        "config",
        "config set",
        "sessions",
        "sessions list",
        "sessions export",
        "sessions doctor",
        "plugin add",
        "plugin update",
        "get",
        "why",
        "search",
        "sessions show",
        "sessions doctor",
        "undo",
        "redo",
        "rewind",
        "man",
        "models",
        "sandbox run",
        "mcp",
        "mcp add",
        "mcp list",
        "mcp test",
        "mcp login",
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

/// The pages for users: README, CHANGELOG and docs.
fn pages() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(root().join("docs")).expect("a folder");
    let files = folder.flatten().map(|it| it.path());
    let pages = files.filter(|it| it.extension().is_some_and(|it| it == "md"));
    let name = |it: std::path::PathBuf| Some(format!("docs/{}", it.file_name()?.to_string_lossy()));
    let mut names: Vec<_> = pages.filter_map(name).collect();
    names.extend(["README.md".to_owned(), "CHANGELOG.md".to_owned()]);
    names.sort();
    names.into_iter().map(|it| (it.clone(), paper(&it))).collect()
}

#[test]
fn commands_and_options_are_known() {
    let help = help();
    let known: BTreeSet<_> = help
        .split(|it: char| !(it.is_ascii_alphanumeric() || it == '-'))
        .filter(|it| it.starts_with('-'))
        .collect();
    for (name, text) in pages() {
        let commands = blocks(&text, "sh").join("\n");
        let commands: Vec<_> = commands
            .lines()
            .chain(quoted(&text))
            .filter(|it| it.contains("sheaf ") && !it.contains("sheaf sandbox run"))
            .collect();
        for command in commands {
            let (_, words) = command.split_once("sheaf ").expect("looked for");
            let words = words.split([';', '|', '#']).next().unwrap_or_default();
            for option in words
                .split_whitespace()
                .filter(|it| it.starts_with('-') && it.len() > 1)
            {
                let option = option.split('=').next().unwrap_or(option);
                assert!(known.contains(option), "{name}: {command}");
            }
        }
        for option in quoted(&text).into_iter().filter(|it| it.starts_with("--")) {
            let word = option.split([' ', '=']).next().unwrap_or(option);
            assert!(known.contains(word), "{name}: {option}");
        }
    }
}

#[test]
fn the_readme_is_short_and_every_page_is_in_the_index() {
    let lines = paper("README.md").lines().count();
    assert!(lines <= 120, "{lines}");
    let index = paper("docs/README.md");
    for (name, _) in pages() {
        let Some(page) = name.strip_prefix("docs/").filter(|it| *it != "README.md") else {
            continue;
        };
        assert!(
            index.contains(&format!("]({page})")),
            "docs/README.md does not list {page}"
        );
    }
}

/// `SHEAF_UPDATE_DOCS=1` writes the page.
#[test]
fn the_page_of_settings_is_up_to_date() {
    let note = "<!-- Generated by `SHEAF_UPDATE_DOCS=1 cargo test --test it page_of_settings`; do not edit. -->";
    let text = format!("{note}\n\n{}", sheaf::config::reference());
    let path = root().join("docs/configuration.md");
    if std::env::var_os("SHEAF_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).expect("it can be written");
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), text, "{note}");
}

#[test]
fn slash_commands_and_variables_are_known() {
    let reference = sheaf::config::reference();
    let help = help();
    let is_known = |name: &str| reference.contains(name) || help.contains(name) || name == "SHEAF_UPDATE_DOCS";
    let mut count = 0;
    for (name, text) in pages() {
        for word in quoted(&text).into_iter().filter_map(|it| it.strip_prefix('/')) {
            // What follows the name is its argument; a path is no command.
            let command = word.split(' ').next().unwrap_or_default();
            let is_other = command.is_empty() || command.contains(['/', '.']) || command.starts_with("mcp__");
            if is_other || ["tmp", "healthz", "v1"].contains(&command) {
                continue;
            }
            count += 1;
            let known = sheaf::tui::actions::ACTIONS.iter().any(|it| it.slash == command);
            assert!(known, "{name}: /{word}");
        }
        let names = text.split(|it: char| !(it.is_ascii_uppercase() || it == '_'));
        for variable in names.filter(|it| it.starts_with("SHEAF_") || it.starts_with("OPENAI_")) {
            assert!(is_known(variable.trim_end_matches('_')), "{name}: {variable}");
        }
    }
    assert!(count > 40, "{count} commands");
}

#[test]
fn the_sample_configurations_are_right() {
    let samples: Vec<String> = pages()
        .iter()
        .flat_map(|(_, text)| blocks(text, "toml").into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(samples.len() >= 3, "{samples:?}");
    for sample in samples {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join(".config/sheaf");
        std::fs::create_dir_all(&folder).expect("made");
        let file = folder.join("config.toml");
        std::fs::write(&file, &sample).expect("written");
        // Some name headers, which only a private file may hold.
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("it is ours");
        let output = Command::new(env!("CARGO_BIN_EXE_sheaf"))
            .args(["config", "explain"])
            .env_clear()
            .env("HOME", home.path())
            .output()
            .expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{sample}");
        let said = String::from_utf8(output.stdout).expect("text");
        if sample.contains("[providers.local]") {
            assert!(said.contains("providers.local.model = \"qwen3\""), "{said}");
        }
    }
}

#[test]
fn files_that_are_named_are_there() {
    let root = root();
    let is_there = |name: &str| {
        let places = ["", "src", "tests/it", "src/tui", "src/serve"];
        places.iter().any(|it| root.join(it).join(name).exists())
    };
    let own = ["ARCHITECTURE.md", "CONTRIBUTING.md"].map(|it| (it.to_owned(), paper(it)));
    for (name, text) in pages().into_iter().chain(own) {
        let folder = Path::new(&name).parent().expect("it has one");
        let links = text.split("](").skip(1).filter_map(|it| it.split(')').next());
        for link in links.filter(|it| !it.contains("://")) {
            assert!(root.join(folder).join(link).exists(), "{name}: {link}");
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
