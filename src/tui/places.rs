//! Files and lines that a text names, and arguments to open them in an editor.

use std::{ffi::OsString, path::Path};

/// A file, and the line counted from 1 if one is named.
pub type FileReference = (String, Option<u64>);

/// The files that a text names, each once, in its order: `src/cart.rs:12`, `src/cart.rs:12:5`, `File "a.py", line 3`,
/// and paths with a folder and an ending that stand between backticks.
pub fn named(text: &str) -> Vec<FileReference> {
    let mut found: Vec<FileReference> = Vec::new();
    for line in text.lines() {
        for word in line.split(is_parting) {
            let place = python(line, word)
                .or_else(|| place(word))
                .or_else(|| quoted(line, word));
            if let Some(place) = place.filter(|it| !found.contains(it)) {
                found.push(place);
            }
        }
    }
    found
}

/// Returns true for a letter that cannot be part of a path.
fn is_parting(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(
            letter,
            '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '<' | '>' | '|' | ',' | ';' | '│'
        )
}

/// `path:line` or `path:line:column`.
pub fn place(word: &str) -> Option<FileReference> {
    let word = word.trim_end_matches(['.', ':', '!', '?']);
    let (path, rest) = word.split_once(':')?;
    let digits = rest.split([':', '-']).next()?;
    let line = digits.parse().ok().filter(|it| *it > 0)?;
    is_path(path).then(|| (path.to_owned(), Some(line)))
}

/// The word under a column (in bytes) of a line, if it names a file.
pub fn place_at(line: &str, at: usize) -> Option<FileReference> {
    let start = line.get(..at)?.rfind(is_parting).map_or(0, |it| it + 1);
    let start = line.ceil_char_boundary(start);
    let rest = line.get(start..)?;
    let end = rest.find(is_parting).map_or(line.len(), |it| start + it);
    let word = line.get(start..end)?;
    python(line, word).or_else(|| place(word)).or_else(|| {
        let path = word.trim_end_matches(['.', ':']);
        (is_path(path) && path.contains('/')).then(|| (path.to_owned(), None))
    })
}

fn python(line: &str, word: &str) -> Option<FileReference> {
    let rest = line.split_once("File \"")?.1;
    let (path, rest) = rest.split_once("\", line ")?;
    let digits = rest.split(|it: char| !it.is_ascii_digit()).next()?;
    (path == word && is_path(path)).then(|| (path.to_owned(), digits.parse().ok()))
}

fn quoted(line: &str, word: &str) -> Option<FileReference> {
    let is_quoted = word.contains('/') && line.contains(&format!("`{word}`"));
    (is_quoted && is_path(word)).then(|| (word.to_owned(), None))
}

/// Returns true for a path: with an extension or a folder, and no URL.
fn is_path(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or_default();
    let ending = name
        .rsplit_once('.')
        .filter(|(stem, _)| !stem.is_empty())
        .map(|it| it.1);
    let has_ending = ending.is_some_and(|it| {
        (1..=10).contains(&it.len())
            && it.bytes().all(|it| it.is_ascii_alphanumeric())
            && it.bytes().any(|it| it.is_ascii_alphabetic())
    });
    !name.is_empty()
        && text.len() < 1024
        && !text.contains("://")
        && !text.starts_with("//")
        && (has_ending || text.contains('/'))
        && text.bytes().any(|it| it.is_ascii_alphabetic())
}

/// The arguments that make an editor open a file at a line.
pub fn arguments(editor: &str, file: &Path, line: Option<u64>) -> Vec<OsString> {
    let Some(line) = line else {
        return vec![file.into()];
    };
    let program = editor.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let mut joined = file.as_os_str().to_owned();
    joined.push(format!(":{line}"));
    match name {
        "code" | "codium" | "cursor" | "code-insiders" | "windsurf" => vec!["--goto".into(), joined],
        "hx" | "helix" | "subl" | "zed" | "zeditor" | "micro" => vec![joined],
        _ => vec![format!("+{line}").into(), file.into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_lines_are_found_in_what_programs_and_people_write() {
        for (text, found) in [
            ("see src/cart.rs:12 and lib.rs:3:7.", "src/cart.rs:12 lib.rs:3"),
            ("  --> src/main.rs:4:5", "src/main.rs:4"),
            ("File \"app/a b.py\", line 31, in f", ""),
            ("  File \"app/a.py\", line 31, in f", "app/a.py:31"),
            ("`src/cart.rs:12-20` twice `src/cart.rs:12`", "src/cart.rs:12"),
            ("the file `src/cart.rs` and src/other.rs", "src/cart.rs"),
            ("at 12:30, localhost:8080, https://a.org:8080/x, 10.0.0.1:80", ""),
            ("error[E0308]: wrong", ""),
            ("", ""),
        ] {
            let shown: Vec<String> = named(text)
                .into_iter()
                .map(|(path, line)| line.map_or(path.clone(), |it| format!("{path}:{it}")))
                .collect();
            assert_eq!(shown.join(" "), found, "{text}");
        }
    }

    #[test]
    fn a_click_finds_the_word_under_it() {
        let line = "ö: see src/cart.rs:12, or not";
        for (at, _) in line.char_indices() {
            let found = place_at(line, at);
            let is_on = line.find("src").unwrap() <= at && at <= line.find(", or").unwrap();
            assert_eq!(found.is_some(), is_on, "{at} {found:?}");
        }
        assert_eq!(place_at(line, 400), None);
    }

    #[test]
    fn each_editor_is_told_in_its_own_way() {
        for (editor, expected) in [
            ("vim", "+7 /w/a.rs"),
            ("/usr/bin/code --wait", "--goto /w/a.rs:7"),
            ("hx", "/w/a.rs:7"),
        ] {
            let given = arguments(editor, Path::new("/w/a.rs"), Some(7));
            let given: Vec<_> = given.iter().map(|it| it.to_string_lossy()).collect();
            assert_eq!(given.join(" "), expected, "{editor}");
        }
    }
}
