//! Changes that the tools make to files, judged by programs that are not ours: git and Jupyter's own library.

use std::{fs, path::Path, process::Command};

use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};
use sheaf::tools::edit::{
    hunks::{hunks, unified},
    notebook::{CellEdit, CellKind, Change, change},
    replace::Edit,
};
use tempfile::TempDir;

/// Runs git in a folder; what it said, if it failed.
fn git(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .args(["-c", "core.autocrlf=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.output().map_err(|it| it.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn git_applies_the_diffs_of_our_hunks() {
    if Command::new("git").arg("--version").output().is_err() {
        crate::skipped("git_applies_the_diffs_of_our_hunks: there is no git");
        return;
    }
    let text = || {
        let line = prop_oneof![4 => "[a-e]", 1 => Just(String::new()), 1 => "[ +@\\\\-]{1,3}[ab]?", 1 => "ä\r?"];
        (vec(line, 0..40), any::<bool>()).prop_map(|(lines, has_end)| {
            let mut text = lines.join("\n");
            if has_end && !text.is_empty() {
                text.push('\n');
            }
            text
        })
    };
    // Two independent texts, and two that differ in places only.
    let near = (text(), vec((0_usize..60, "[a-z]{0,3}"), 0..4)).prop_map(|(old, edits)| {
        let mut lines: Vec<String> = old.split_inclusive('\n').map(str::to_owned).collect();
        for (at, new) in edits {
            match lines.get_mut(at) {
                Some(line) if new.is_empty() => line.clear(),
                Some(line) => line.insert_str(0, &format!("{new}\n")),
                None => {}
            }
        }
        (old, lines.concat())
    });
    let pairs = vec(prop_oneof![(text(), text()), near], 60);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(8));
    let result = runner.run(&pairs, |pairs| {
        let folder = TempDir::new().expect("a folder");
        git(folder.path(), &["init", "-q"]).expect("a repository");
        let mut patch = String::new();
        for (at, (old, new)) in pairs.iter().enumerate() {
            fs::write(folder.path().join(format!("f{at}")), old).expect("a file");
            let hunks = hunks(old, new);
            if !hunks.is_empty() {
                patch.push_str(&format!("diff --git a/f{at} b/f{at}\n--- a/f{at}\n+++ b/f{at}\n"));
                patch.push_str(&unified(old, &hunks));
            }
        }
        prop_assume!(!patch.is_empty());
        fs::write(folder.path().join("patch"), &patch).expect("a patch");
        let check = git(folder.path(), &["apply", "--check", "patch"]);
        prop_assert_eq!(check, Ok(()), "{}", patch);
        let applied = git(folder.path(), &["apply", "patch"]);
        prop_assert_eq!(applied, Ok(()), "{}", patch);
        for (at, (_, new)) in pairs.iter().enumerate() {
            let text = fs::read_to_string(folder.path().join(format!("f{at}"))).expect("a file");
            prop_assert_eq!(&text, new, "f{} of {}", at, patch);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Reads every notebook of a folder as Jupyter does, strictly, and prints the cells that it found.
const JUDGE: &str = "
import json, pathlib, sys, warnings
import nbformat
warnings.simplefilter('error')
found = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob('*.ipynb')):
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    found[path.name] = [[it.cell_type, it.source, len(it.get('outputs', []))] for it in notebook.cells]
print(json.dumps(found))
";

/// A notebook with a cell of each kind, as format 4 with this minor number has it.
fn notebook(minor: u64, is_list: bool, indent: usize) -> String {
    let source = |text: &str| {
        if is_list {
            text.split_inclusive('\n').map(Value::from).collect()
        } else {
            Value::from(text)
        }
    };
    let mut cells = vec![
        json!({ "cell_type": "markdown", "metadata": {}, "source": source("# Title\n\ntext") }),
        json!({
            "cell_type": "code", "execution_count": 2, "metadata": { "own": [1, 2.50] }, "source": source("x = 1\nprint(x)"),
            "outputs": [{ "output_type": "stream", "name": "stdout", "text": "1\n" }]
        }),
        json!({ "cell_type": "raw", "metadata": {}, "source": source("raw \"text\"") }),
    ];
    if minor >= 5 {
        for (at, cell) in cells.iter_mut().enumerate() {
            cell["id"] = format!("cell-{at}").into();
        }
    }
    let notebook = json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor });
    if indent == 0 {
        return notebook.to_string();
    }
    let pretty = serde_json::to_string_pretty(&notebook).expect("JSON");
    let line = |line: &str| {
        let rest = line.trim_start();
        format!("{}{rest}\n", " ".repeat((line.len() - rest.len()) / 2 * indent))
    };
    pretty.lines().map(line).collect()
}

#[test]
fn jupyter_reads_the_notebooks_that_we_changed() {
    let python = std::env::var("SHEAF_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_judge = Command::new(&python).args(["-c", "import nbformat"]).output();
    if !has_judge.is_ok_and(|it| it.status.success()) {
        crate::skipped(&format!(
            "jupyter_reads_the_notebooks_that_we_changed: `{python}` cannot import nbformat; \
             name one that can in SHEAF_TEST_PYTHON"
        ));
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let mut wants = serde_json::Map::new();
    let old = [
        json!(["markdown", "# Title\n\ntext", 0]),
        json!(["code", "x = 1\nprint(x)", 1]),
        json!(["raw", "raw \"text\"", 0]),
    ];
    for minor in [0, 4, 5] {
        for is_list in [false, true] {
            for indent in [0, 1, 4] {
                let before = notebook(minor, is_list, indent);
                let mut write = |name: &str, asked: &Change, cells: Vec<Value>| {
                    let name = format!("{minor}-{is_list}-{indent}-{name}.ipynb");
                    let after = change(&before, asked, &name).expect("a change").text;
                    fs::write(folder.path().join(&name), after).expect("a file");
                    wants.insert(name, cells.into());
                };
                let source = "ä = \"\\n\"\n\n\t'\u{1F600}'";
                for (kind, name) in [
                    (CellKind::Code, "code"),
                    (CellKind::Markdown, "markdown"),
                    (CellKind::Raw, "raw"),
                ] {
                    for cell in 0..=3 {
                        let what = CellEdit::Insert {
                            source: source.to_owned(),
                        };
                        let mut cells = old.to_vec();
                        cells.insert(cell, json!([name, source, 0]));
                        write(&format!("{name}{cell}"), &Change { cell, kind, what }, cells);
                    }
                }
                for (cell, kind, from, to) in [
                    (0, CellKind::Markdown, "text", source),
                    (1, CellKind::Code, "x = 1\n", ""),
                    (1, CellKind::Code, "print(x)", source),
                    (2, CellKind::Raw, "\"text\"", "'\\'"),
                ] {
                    let edit = Edit {
                        old: from.to_owned(),
                        new: to.to_owned(),
                        is_all: false,
                    };
                    let mut cells = old.to_vec();
                    let text = cells[cell][1].as_str().expect("a text").replace(from, to);
                    cells[cell][1] = text.into();
                    cells[cell][2] = 0.into();
                    let what = CellEdit::Edit(edit);
                    write(&format!("edit{cell}{}", to.len()), &Change { cell, kind, what }, cells);
                }
            }
        }
    }
    let output = Command::new(&python)
        .args(["-c", JUDGE])
        .arg(folder.path())
        .output()
        .expect("a judgement");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found, Value::Object(wants));
}
