//! Names that mean something to tools, to git and to this program.
//!
//! They are compared folded: file systems that do not tell upper from lower case, or that compose and skip characters, would
//! let a name pass by another spelling.

use std::{
    ffi::OsStr,
    path::{Component, Path},
};

use crate::text::WordList;
use unicode_normalization::UnicodeNormalization;

/// Folders whose content runs or decides what runs, by the names that lead there.
const FOLDERS: WordList = WordList(
    ".git .sheaf .cursor .claude .vscode .idea .husky .ssh .gnupg .config/sheaf .config/git .config/fish
     .local/share/sheaf .local/state/sheaf .github/workflows .github/actions .gitea/workflows .forgejo/workflows
     .gitlab/ci .circleci .buildkite .woodpecker",
);

/// Folders in those that hold plans for people to read.
const FREE: WordList = WordList(".sheaf/plans .cursor/plans");

/// Files of the same kind. A `*` at the start or the end stands for anything.
const FILES: WordList = WordList(
    ".mcp.json mcp.json *.code-workspace .gitmodules .gitattributes .gitconfig .envrc .env* .sheafignore
     .cursorignore .cursorindexingignore .gitlab-ci.yml .travis.yml .woodpecker.yml .bashrc .bash_profile .bash_login
     .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login
     .inputrc .xprofile .ripgreprc",
);

/// Folders at the top of a workspace whose mere existence means something.
pub fn top_folders() -> impl Iterator<Item = &'static str> {
    const MATTER: [&str; 7] = [".git", ".sheaf", ".cursor", ".claude", ".vscode", ".idea", ".husky"];
    MATTER.into_iter()
}

/// A name as the most forgiving file system would compare it.
pub fn folded(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    if name.bytes().all(|it| it.is_ascii()) {
        return name.to_ascii_lowercase();
    }
    name.chars()
        .filter(|it| !is_skipped(*it))
        .nfc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfc()
        .collect()
}

/// Characters that HFS+ does not compare.
fn is_skipped(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// The names of a path, folded.
pub fn parts(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|it| match it {
            Component::Normal(name) => Some(folded(name)),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect()
}

pub fn is_git(name: &OsStr) -> bool {
    folded(name) == ".git"
}

/// Returns true if a path leads into git's own folder, or is the file that stands for it.
pub fn leads_to_git(path: &Path) -> bool {
    parts(path).iter().any(|it| it == ".git")
}

/// Returns true if every change of the file at this path asks.
pub fn is_protected(path: &Path) -> bool {
    let parts = parts(path);
    let is_named = parts
        .last()
        .is_some_and(|name| FILES.iter().any(|it| is_like(it, name)));
    // A plan is free, and a folder of tools that hides in the folder of plans is not.
    let tools = count(FOLDERS, &parts);
    let is_free = tools == 1 && count(FREE, &parts) > 0 && !parts.iter().any(|it| it == ".git");
    is_named || (tools > 0 && !is_free)
}

/// Counts how often these folders are on the way.
fn count(folders: WordList, parts: &[String]) -> usize {
    let times = |folder: &str| {
        let names = || folder.split('/');
        parts
            .windows(names().count())
            .filter(|it| it.iter().eq(names()))
            .count()
    };
    folders.iter().map(times).sum()
}

/// The same as regular expressions for a sandbox that holds names by their text, whether they exist or not: what is
/// protected at any depth, and the parts of that which are free again. Without git's own folder where `git_write` opens it,
/// but with what runs or decides what runs in it.
#[cfg(any(test, target_os = "macos"))]
pub fn patterns(git_write: bool, fixed: &[&str]) -> (Vec<String>, Vec<String>) {
    // Names that mean themselves, in any case.
    let literal = |name: &str| {
        name.chars()
            .map(|it| match it {
                '*' => "[^/]*".to_owned(),
                it if it.is_ascii_alphabetic() => {
                    format!("[{}{}]", it.to_ascii_lowercase(), it.to_ascii_uppercase())
                }
                it if it.is_ascii_digit() || it == '_' || it == '-' => it.to_string(),
                it => format!("[{it}]"),
            })
            .collect::<String>()
    };
    let path = |folder: &str| folder.split('/').map(literal).collect::<Vec<_>>().join("/");
    let folders = FOLDERS.iter().filter(|it| !git_write || *it != ".git");
    let mut held: Vec<String> = folders.map(|it| format!("/{}(/|$)", path(it))).collect();
    if git_write {
        let inside = fixed
            .iter()
            .map(|it| format!("/{}/(.*/)?{}(/|$)", literal(".git"), literal(it)));
        held.extend(inside);
    }
    // Variables of a project are set up by commands every day.
    let files = FILES.iter().filter(|it| *it != ".env*");
    held.extend(files.map(|it| format!("/{}$", literal(it))));
    (
        held,
        FREE.iter().map(|it| format!("/{}/[^.][^/]*$", path(it))).collect(),
    )
}

fn is_like(pattern: &str, name: &str) -> bool {
    if let Some(end) = pattern.strip_prefix('*') {
        name.ends_with(end)
    } else if let Some(start) = pattern.strip_suffix('*') {
        name.starts_with(start)
    } else {
        name == pattern
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_or_decides_what_runs_is_protected_in_any_spelling() {
        for (path, expected) in [
            ("src/main.rs", false),
            ("README.md", false),
            (".gitignore", false),
            (".github/ISSUE_TEMPLATE.md", false),
            (".github/workflows/ci.yml", true),
            (".GitHub/Workflows/ci.yml", true),
            (".git/hooks/pre-commit", true),
            ("sub/.git/config", true),
            (".git", true),
            (".gIt/config", true),
            (".g\u{200c}it/config", true),
            (".cursor/mcp.json", true),
            (".cursor/rules/style.mdc", true),
            (".Cursor/MCP.json", true),
            (".cur\u{17f}or/mcp.json", true),
            (".vscode/tas\u{212a}s.json", true),
            (".cursor/plans/tidy-up.plan.md", false),
            (".sheaf/plans/tidy-up.plan.md", false),
            (".sheaf/plans/.cursor/mcp.json", true),
            (".cursor/plans/.git/config", true),
            (".cursor/plansible.md", true),
            (".sheaf/config.toml", true),
            ("mcp.json", true),
            ("a/b/.mcp.json", true),
            ("shop.code-workspace", true),
            (".env.local", true),
            (".envrc", true),
            (".bashrc", true),
            (".config/sheaf/config.toml", true),
            (".config/other/config.toml", false),
            ("config/sheaf/config.toml", false),
            (".sheafignore", true),
            ("deep/.cursorignore", true),
            (".husky/pre-commit", true),
            ("git/hooks", false),
            ("", false),
        ] {
            assert_eq!(is_protected(Path::new(path)), expected, "{path}");
        }
    }
}
