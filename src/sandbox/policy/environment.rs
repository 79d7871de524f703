//! The variables of a command: a short list, so that no key and no socket of the user's is among them.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

/// Variables passed on unchanged, beside `LC_…`.
const PASSED: &[&str] = &["HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ"];

/// Variables set for every command, so that nothing starts a pager or asks for a password.
const GIVEN: &[(&str, &str)] = &[
    ("TERM", "xterm-256color"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// A `PATH` where there is none.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The variables of a command, made of ours. `more` are names that the user lets through.
pub fn variables(
    ours: impl Iterator<Item = (OsString, OsString)>,
    more: &[String],
    temporary: &Path,
) -> Vec<(OsString, OsString)> {
    let mut path = OsString::from(USUAL_PATH);
    let mut found: Vec<(OsString, OsString)> = Vec::new();
    for (name, value) in ours {
        let is_passed = name.to_str().is_some_and(|name| {
            PASSED.contains(&name) || name.starts_with("LC_") || (more.iter().any(|it| it == name) && !is_fixed(name))
        });
        if name == "PATH" {
            path = absolute(&value).unwrap_or(path);
        } else if is_passed {
            found.push((name, value));
        }
    }
    found.push(("PATH".into(), path));
    found.push(("TMPDIR".into(), temporary.into()));
    found.extend(GIVEN.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    found
}

/// Names that the user's list cannot change.
fn is_fixed(name: &str) -> bool {
    matches!(name, "PATH" | "TMPDIR" | "SHEAF_COMMAND" | "SHEAF_SANDBOX") || GIVEN.iter().any(|it| it.0 == name)
}

/// The folders of a `PATH` that do not depend on where one stands: a repository's own `git` must not be found.
fn absolute(path: &OsStr) -> Option<OsString> {
    let folders = std::env::split_paths(path).filter(|it| it.is_absolute());
    std::env::join_paths(folders).ok().filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn only_what_is_listed_gets_through() {
        let ours = [
            ("HOME", "/home/kim"),
            ("LC_ALL", "C.UTF-8"),
            ("PATH", ".:/usr/bin::bin:/opt/x"),
            ("OPENAI_API_KEY", "sk-1"),
            ("SHEAF_TOKEN", "t"),
            ("SSH_AUTH_SOCK", "/run/x"),
            ("GIT_CONFIG_COUNT", "1"),
            ("LD_PRELOAD", "x.so"),
            ("BASH_ENV", "x"),
            ("BASH_FUNC_git%%", "() { evil; }"),
            ("TERM", "dumb"),
            ("CARGO_HOME", "/opt/cargo"),
            ("PAGER", "less"),
        ];
        let ours = ours.map(|(name, value)| (name.into(), value.into())).into_iter();
        let more = ["CARGO_HOME", "PAGER", "PATH"].map(str::to_owned);
        let mut found: Vec<_> = variables(ours, &more, Path::new("/tmp/x"))
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "CARGO_HOME=/opt/cargo",
                "DEBIAN_FRONTEND=noninteractive",
                "EDITOR=true",
                "GIT_EDITOR=true",
                "GIT_PAGER=cat",
                "GIT_TERMINAL_PROMPT=0",
                "HOME=/home/kim",
                "LC_ALL=C.UTF-8",
                "PAGER=cat",
                "PATH=/usr/bin:/opt/x",
                "TERM=xterm-256color",
                "TMPDIR=/tmp/x",
                "VISUAL=true",
            ]
        );
    }

    #[test]
    fn there_is_always_a_path() {
        for ours in [None, Some(""), Some(".:bin")] {
            let ours = ours.map(|it| (OsString::from("PATH"), OsString::from(it)));
            let found = variables(ours.into_iter(), &[], Path::new("/tmp"));
            let path = found.iter().find(|it| it.0 == "PATH").map(|it| it.1.clone());
            assert_eq!(path.as_deref(), Some(OsStr::new(USUAL_PATH)));
        }
    }
}
