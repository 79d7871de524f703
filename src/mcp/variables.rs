//! `${…}` in the files of other programs: variables of the environment and places.

use std::path::Path;

/// Values for `${…}`.
pub struct Filling<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub home: Option<&'a Path>,
    pub workspace: &'a Path,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    /// A variable of the environment, and what stands for it if it is not set.
    Variable(&'a str, Option<&'a str>),
    /// A text that the user is to be asked for.
    Input(&'a str),
    Home,
    Workspace,
    WorkspaceName,
    Separator,
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inner, behind)) = after.split_once('}') else {
            break;
        };
        let part = match inner {
            "userHome" => Some(Part::Home),
            "workspaceFolder" => Some(Part::Workspace),
            "workspaceFolderBasename" => Some(Part::WorkspaceName),
            "pathSeparator" | "/" => Some(Part::Separator),
            inner => match inner.strip_prefix("input:") {
                Some(id) => Some(Part::Input(id)),
                None => variable(inner.strip_prefix("env:").unwrap_or(inner)),
            },
        };
        match part {
            Some(part) => {
                found.push(Part::Text(before));
                found.push(part);
            }
            // Not ours to fill.
            None => {
                let length = before.len() + inner.len() + "${}".len();
                found.push(Part::Text(rest.get(..length).unwrap_or(rest)));
            }
        }
        rest = behind;
    }
    found.push(Part::Text(rest));
    found.retain(|it| *it != Part::Text(""));
    found
}

fn variable(inner: &str) -> Option<Part<'_>> {
    let (name, otherwise) = match inner.split_once(":-") {
        Some((name, otherwise)) => (name, Some(otherwise)),
        None => (inner, None),
    };
    let is_first = |it: char| it.is_ascii_alphabetic() || it == '_';
    let is_name = name.starts_with(is_first) && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    is_name.then_some(Part::Variable(name, otherwise))
}

/// The names of the variables that a text is filled with.
pub fn names(text: &str) -> Vec<String> {
    let name = |it: Part<'_>| match it {
        Part::Variable(name, _) => Some(name.to_owned()),
        Part::Input(id) => Some(format!("input:{id}")),
        Part::Text(_) | Part::Home | Part::Workspace | Part::WorkspaceName | Part::Separator => None,
    };
    parts(text).into_iter().filter_map(name).collect()
}

/// Fills a text. Error: the name of a variable that is not set.
pub fn fill(text: &str, with: &Filling<'_>) -> Result<String, String> {
    let mut filled = String::new();
    for part in parts(text) {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Variable(name, otherwise) => match ((with.variable)(name), otherwise) {
                (Some(value), _) => filled.push_str(&value),
                (None, Some(otherwise)) => filled.push_str(otherwise),
                (None, None) => return Err(name.to_owned()),
            },
            Part::Input(id) => return Err(format!("input:{id}")),
            Part::Home => match with.home {
                Some(home) => filled.push_str(&home.to_string_lossy()),
                None => return Err("userHome".to_owned()),
            },
            Part::Workspace => filled.push_str(&with.workspace.to_string_lossy()),
            Part::WorkspaceName => {
                filled.push_str(&with.workspace.file_name().unwrap_or_default().to_string_lossy());
            }
            Part::Separator => filled.push(std::path::MAIN_SEPARATOR),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_filled_as_cursor_and_claude_code_do_it() {
        let variable = |name: &str| (name == "TOKEN").then(|| "t".to_owned());
        let with = Filling {
            variable: &variable,
            home: Some(Path::new("/home/kim")),
            workspace: Path::new("/work/shop"),
        };
        for (text, expected) in [
            ("plain", Ok("plain")),
            ("a ${env:TOKEN} b", Ok("a t b")),
            ("${TOKEN}${TOKEN}", Ok("tt")),
            ("${MISSING:-x y}", Ok("x y")),
            ("${TOKEN:-x}", Ok("t")),
            ("${MISSING}", Err("MISSING")),
            ("${input:key}", Err("input:key")),
            ("${userHome}${/}a${pathSeparator}b", Ok("/home/kim/a/b")),
            ("${workspaceFolder}/${workspaceFolderBasename}", Ok("/work/shop/shop")),
            // Nothing is run, nothing is guessed, and what is filled in is not filled again.
            ("$TOKEN ${TOKEN", Ok("$TOKEN ${TOKEN")),
            ("${1} ${a-b} ${command:x}", Ok("${1} ${a-b} ${command:x}")),
            ("é${TOKEN}é", Ok("été")),
        ] {
            let filled = fill(text, &with);
            assert_eq!(filled.as_deref().map_err(String::as_str), expected, "{text}");
        }
        assert_eq!(
            names("${A} ${env:B:-x} ${userHome} ${input:c} $D"),
            ["A", "B", "input:c"]
        );
        let nested = |_: &str| Some("${TOKEN}".to_owned());
        let with = Filling {
            variable: &nested,
            ..with
        };
        assert_eq!(fill("${A}", &with).as_deref(), Ok("${TOKEN}"));
    }
}
