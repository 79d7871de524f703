//! Where rules lie, and their files.

use std::path::Path;

use super::{
    Rule, RuleKind,
    front::{self, Front},
};
use crate::{
    agent::{cut, glob::Globs},
    config::Fingerprint,
    extensions::{Plugin, repository_above},
    os::file,
    sandbox::{Place, Refused, Workspace},
};

/// One rule is cut here.
pub const RULE_BYTES: usize = 32 << 10;
/// A larger file is not even looked into.
const FILE_BYTES: u64 = 1 << 20;
/// A file that a rule names is cut here.
const INCLUDED_BYTES: usize = 16 << 10;
/// All files that one rule names, together.
const INCLUDES_BYTES: usize = 64 << 10;
/// More files in a rule are left out.
const INCLUDES: usize = 16;
/// More rules in a folder are left out.
const RULES: usize = 256;
/// Folders in folders of rules.
const DEPTH: usize = 6;

/// A file that may be a rule, before it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRule {
    /// From the root of the workspace, or absolute.
    pub path: String,
    form: RuleFormat,
}

/// The way in which a file states its kind of rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleFormat {
    /// By its head.
    Headed,
    /// By its head; always, where it has none.
    Ours,
    /// It has none and holds always.
    Plain,
    /// It waits for its name.
    Manual,
}

/// The files of rules that lie in `folder` (`""` or `src/`), the weakest first.
pub fn find(workspace: &Workspace, folder: &str) -> Vec<FoundRule> {
    let mut found = Vec::new();
    let is_root = folder.is_empty();
    let there = |path: &str| is_file(workspace, path);
    let plain = |path: String| FoundRule {
        path,
        form: RuleFormat::Plain,
    };
    if is_root {
        found.extend(Some(".cursorrules".to_owned()).filter(|it| there(it)).map(plain));
        if let Some(above) = repository_above(workspace.root()) {
            let above = above.to_string_lossy();
            found.extend(papers(&format!("{above}/"), there).map(plain));
        }
    }
    found.extend(papers(folder, there).map(plain));
    if is_root {
        for path in below(workspace, ".sheaf/rules/") {
            if Path::new(&path).extension().is_some_and(|it| it == "md") {
                found.push(FoundRule {
                    path,
                    form: RuleFormat::Ours,
                });
            }
        }
    }
    for path in below(workspace, &format!("{folder}.cursor/rules/")) {
        let ending = Path::new(&path).extension().and_then(|it| it.to_str());
        let form = match ending {
            Some("mdc") => RuleFormat::Headed,
            Some("md") if path.ends_with("/RULE.md") => RuleFormat::Headed,
            Some("md") => RuleFormat::Manual,
            Some(_) | None => continue,
        };
        found.push(FoundRule { path, form });
    }
    found.truncate(RULES);
    found
}

/// The plain file of a folder: `CLAUDE.md` counts only where there is no `AGENTS.md`.
fn papers(folder: &str, there: impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
    let names = ["AGENTS.md", "CLAUDE.md"].map(|it| format!("{folder}{it}"));
    names.into_iter().find(|it| there(it)).into_iter()
}

fn is_file(workspace: &Workspace, path: &str) -> bool {
    let Ok(file) = workspace.locate(path) else {
        return false;
    };
    file.place != Place::Hidden && file.path.is_file()
}

/// All files below a folder of the workspace, by name; links to folders are not followed.
fn below(workspace: &Workspace, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let located = workspace.locate(&folder);
        let Some(located) = located.ok().filter(|it| it.place == Place::Inside) else {
            continue;
        };
        let Ok(entries) = std::fs::read_dir(&located.path) else {
            continue;
        };
        for entry in entries.flatten().take(RULES * 4) {
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            if kind.is_dir() && depth < DEPTH {
                folders.push((format!("{folder}{name}/"), depth + 1));
            } else if !kind.is_dir() && found.len() < RULES * 4 {
                found.push(format!("{folder}{name}"));
            }
        }
    }
    found.sort();
    found
}

/// The rule in a file; what is wrong with it goes into `warnings`. `folder`: where it belongs.
pub fn read(workspace: &Workspace, found: &FoundRule, folder: &str, warnings: &mut Vec<String>) -> Option<Rule> {
    let FoundRule { path, form } = found;
    let text = match text_of(workspace, path) {
        Ok(text) => text,
        Err(Refused::Missing(_)) => return None,
        Err(refused) => {
            warnings.push(format!("the rule {path} is left out: {refused}"));
            return None;
        }
    };
    let (head, body) = match form {
        RuleFormat::Plain => (None, text.strip_prefix('\u{feff}').unwrap_or(&text)),
        RuleFormat::Headed | RuleFormat::Ours | RuleFormat::Manual => front::split(&text),
    };
    let kind = match (form, &head) {
        (RuleFormat::Plain, _) | (RuleFormat::Ours, None) => RuleKind::Always,
        (RuleFormat::Manual, _) => RuleKind::Manual,
        (RuleFormat::Headed | RuleFormat::Ours, head) => kind_of(head.as_ref()),
    };
    let head = head.unwrap_or_default();
    let (globs, unread) = Globs::new(&head.globs);
    for pattern in unread {
        warnings.push(format!("the rule {path} has a pattern that cannot be read: {pattern}"));
    }
    let mut whole = body.trim().to_owned();
    if let Some(begin) = cut::head(&whole, RULE_BYTES) {
        warnings.push(format!(
            "the rule {path} is long: only its first {} of {} KiB are sent",
            RULE_BYTES >> 10,
            whole.len().div_ceil(1 << 10)
        ));
        let rest = whole.len() - begin.len();
        whole = format!("{}\n[cut: {rest} bytes of this rule are left out]", begin.trim_end());
    }
    let included = included(workspace, &whole, path);
    let mut parts = vec![text.as_bytes()];
    parts.extend(included.iter().flat_map(|it| [it.0.as_bytes(), it.1.as_bytes()]));
    Some(Rule {
        name: name_of(path),
        path: path.clone(),
        folder: folder.to_owned(),
        kind,
        print: Fingerprint::of(&parts),
        included,
        description: head.description,
        globs,
        text: whole,
    })
}

/// The rules of plugins; what is wrong with them goes into `warnings`.
pub fn of_plugins(plugins: &[Plugin], warnings: &mut Vec<String>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for plugin in plugins {
        for (name, file) in plugin.rules().into_iter().take(RULES) {
            let bytes = match file::read_beneath(&plugin.root, &file, FILE_BYTES) {
                Ok(bytes) => bytes,
                Err(error) => {
                    warnings.push(format!("the rule {name} is left out: {error}"));
                    continue;
                }
            };
            let text = Plugin::filled(&plugin.root, &String::from_utf8_lossy(&bytes));
            let (head, body) = front::split(&text);
            let kind = kind_of(head.as_ref());
            let head = head.unwrap_or_default();
            let (globs, unread) = Globs::new(&head.globs);
            for pattern in unread {
                warnings.push(format!("the rule {name} has a pattern that cannot be read: {pattern}"));
            }
            let body = body.trim();
            let text = match cut::head(body, RULE_BYTES) {
                None => body.to_owned(),
                Some(begin) => format!("{}\n[cut: the rest of this rule is left out]", begin.trim_end()),
            };
            rules.push(Rule {
                name,
                path: plugin.root.join(&file).to_string_lossy().into_owned(),
                folder: String::new(),
                kind,
                print: Fingerprint::of(&[text.as_bytes()]),
                included: Vec::new(),
                description: head.description,
                globs,
                text,
            });
        }
    }
    rules.retain(|it| !it.text.is_empty());
    rules
}

fn kind_of(head: Option<&Front>) -> RuleKind {
    match head {
        Some(head) if head.is_always => RuleKind::Always,
        Some(head) if !head.globs.is_empty() => RuleKind::AutoAttached,
        Some(head) if !head.description.is_empty() => RuleKind::AgentRequested,
        Some(_) | None => RuleKind::Manual,
    }
}

/// The name of a rule, as the user types it after `@`.
fn name_of(path: &str) -> String {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or(path);
    let folder = parts.next();
    match (file, folder) {
        ("RULE.md", Some(folder)) => folder.to_owned(),
        (file, _) => [".mdc", ".md"]
            .iter()
            .find_map(|it| file.strip_suffix(it))
            .unwrap_or(file)
            .to_owned(),
    }
}

fn text_of(workspace: &Workspace, path: &str) -> Result<String, Refused> {
    let file = workspace.locate(path)?;
    let bytes = workspace.read(&file, FILE_BYTES)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The files that a rule names, each once and cut; what is no file of the workspace is no name.
fn included(workspace: &Workspace, text: &str, own: &str) -> Vec<(String, String)> {
    let mut included: Vec<(String, String)> = Vec::new();
    let mut room = INCLUDES_BYTES;
    for written in names(text).into_iter().take(INCLUDES * 4) {
        let file = workspace.locate(&written).ok().filter(|it| it.place == Place::Inside);
        let Some(file) = file.filter(|it| it.path.is_file() && it.shown != own) else {
            continue;
        };
        if included.iter().any(|it| it.0 == file.shown) || included.len() == INCLUDES {
            continue;
        }
        let Ok(bytes) = workspace.read(&file, FILE_BYTES) else {
            continue;
        };
        // A picture that a rule names is no text.
        if bytes.contains(&0) {
            continue;
        }
        let text = String::from_utf8_lossy(&bytes);
        let limit = INCLUDED_BYTES.min(room);
        let text = match cut::head(&text, limit) {
            None => text.trim_end().to_owned(),
            Some(begin) => format!(
                "{}\n[cut: {} bytes are left out]",
                begin.trim_end(),
                text.len() - begin.len()
            ),
        };
        room = room.saturating_sub(text.len());
        included.push((file.shown, text));
        if room == 0 {
            break;
        }
    }
    included
}

/// Files that a rule includes as `@path` or `[text](mdc:path)`, outside of code.
fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut fence: Option<char> = None;
    for line in text.lines() {
        let begin = line.trim_start();
        let mark = ['`', '~']
            .into_iter()
            .find(|it| begin.starts_with(&it.to_string().repeat(3)));
        match (fence, mark) {
            (None, Some(mark)) => {
                fence = Some(mark);
                continue;
            }
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                continue;
            }
            (Some(_), _) => continue,
            (None, None) => {}
        }
        // Every other part stands between backticks.
        for prose in line.split('`').step_by(2) {
            for (at, _) in prose.match_indices("](mdc:") {
                let target = prose.get(at + "](mdc:".len()..).unwrap_or_default();
                let end = target.find([')', '#', ' ']).unwrap_or(target.len());
                names.extend(target.get(..end).map(str::to_owned));
            }
            for (at, _) in prose.match_indices('@') {
                let before = prose.get(..at).and_then(|it| it.chars().next_back());
                if before.is_some_and(|it| it.is_alphanumeric() || matches!(it, '.' | '_' | '-' | '@')) {
                    continue;
                }
                let rest = prose.get(at + 1..).unwrap_or_default();
                let end = rest
                    .find(|it: char| {
                        it.is_whitespace() || matches!(it, '"' | '\'' | '(' | ')' | '<' | '>' | ',' | ';' | '*')
                    })
                    .unwrap_or(rest.len());
                let path = rest
                    .get(..end)
                    .unwrap_or_default()
                    .trim_end_matches(['.', ':', '!', '?']);
                if !path.is_empty() {
                    names.push(path.to_owned());
                }
            }
        }
    }
    names.retain(|it| !it.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_in_prose_only() {
        for (text, want) in [
            ("See @docs/a.md, and @b.rs.", "docs/a.md b.rs"),
            (
                "[the guide](mdc:docs/guide.md) and [x](mdc:src/x.rs#L3)",
                "docs/guide.md src/x.rs",
            ),
            ("mail me@example.com", ""),
            ("`@Override` and `a` @c", "c"),
            ("```java\n@Test\n```\n@d", "d"),
            ("~~~\n@Test\n```\n~~~\n(@e)", "e"),
            ("@", ""),
            ("[x](https://a.b/c)", ""),
        ] {
            assert_eq!(names(text).join(" "), want, "{text}");
        }
    }
}
