//! A message of the user's as the model gets it: what changed since the last one, what it points at, then the words.

use super::{FileWatch, FirstContext, List, linter_errors, mentions, mistakes, shown, viewed};
use crate::{
    agent::prompt::{Facts, query, reminder, rules::RuleSet},
    models::Part,
    protocol::Mode,
    sandbox::{Seen, Workspace},
    tools::lints::Findings,
    transcript::Transcript,
};

/// Files that the user has named or opened in a conversation and that are remembered.
const OPEN: usize = 10;

/// The surroundings of a message.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub mode: Mode,
    /// Facts that the words about the mode depend on.
    pub prompt: &'a Facts<'a>,
    /// The mode of the message before, if there is one.
    pub was: Option<Mode>,
    /// `None`: a conversation without files.
    pub workspace: Option<&'a Workspace>,
    /// The conversation before the message.
    pub transcript: &'a Transcript,
    pub seen: &'a Seen,
    /// The files of the workspace, as far as they are known.
    pub files: Option<&'a List>,
    /// The results of the checkers.
    pub findings: &'a Findings,
}

/// The message, and what could not be done for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// A text, then the pictures.
    pub parts: Vec<Part>,
    /// For the user.
    pub warnings: Vec<String>,
}

/// Puts a message together. `open` is what the user named earlier, and takes what they name now.
///
/// Reads files: not for the thread that paints.
pub fn message_parts(
    text: &str,
    around: &Surroundings<'_>,
    rules: &mut RuleSet,
    watch: &FileWatch,
    open: &mut Vec<String>,
) -> Told {
    let mut told = Told::default();
    let mut before: Vec<String> = Vec::new();
    if let Some(workspace) = around.workspace {
        let attached = mentions::resolve(text, workspace, around.transcript, rules);
        let known = shown(workspace, &around.seen.known());
        let lately = around.files.map(List::worked_on).unwrap_or_default();
        let recent = || lately.iter().copied().chain(known.iter().map(String::as_str));
        before.extend(viewed(workspace, recent(), open.iter().map(String::as_str)));
        let named = open.iter().chain(&attached.paths).map(String::as_str);
        let mistakes = mistakes(workspace, around.findings, recent().chain(named));
        before.extend(linter_errors(mistakes));
        before.extend(watch.changes(workspace));
        take(attached, around.seen, rules, open, &mut before, &mut told);
    }
    before.extend(reminder(around.mode, around.was, around.prompt));
    told.parts.insert(0, Part::Text(query(text, &before)));
    told
}

/// Puts together what is said while an answer is made: the words and what they point at. How things stand around them,
/// the model has just been told.
///
/// Reads files: not for the thread that paints.
pub fn steering_parts(text: &str, around: &Surroundings<'_>, rules: &mut RuleSet, open: &mut Vec<String>) -> Told {
    let mut told = Told::default();
    let mut before: Vec<String> = Vec::new();
    if let Some(workspace) = around.workspace {
        let attached = mentions::resolve(text, workspace, around.transcript, rules);
        take(attached, around.seen, rules, open, &mut before, &mut told);
    }
    before.extend(reminder(around.mode, around.was, around.prompt).filter(|_| around.was != Some(around.mode)));
    told.parts.insert(0, Part::Text(query(text, &before)));
    told
}

/// Remembers a file as open, the last one first.
pub fn open(files: &mut Vec<String>, path: String) {
    files.retain(|it| *it != path);
    files.insert(0, path);
    files.truncate(OPEN);
}

/// Builds a message with its attachments and their rules in front of it, and remembers the files as open and as read.
fn take(
    mut attached: mentions::Attachments,
    seen: &Seen,
    rules: &mut RuleSet,
    open: &mut Vec<String>,
    before: &mut Vec<String>,
    told: &mut Told,
) {
    // A folder is none of the files that rules are for; what is read in it will be.
    attached.paths.retain(|it| !it.ends_with('/'));
    before.extend(
        rules.attach(
            attached
                .paths
                .iter()
                .map(String::as_str)
                .chain(open.iter().map(String::as_str)),
        ),
    );
    before.push(attached.text);
    for (file, part) in attached.read {
        seen.note(&file, part);
    }
    for path in attached.paths {
        self::open(open, path);
    }
    told.warnings = attached.warnings;
    told.parts.extend(attached.images.into_iter().map(Part::Image));
}

impl FirstContext {
    /// The message that goes before the first one of the user.
    pub fn part(&self) -> Part {
        Part::Text(self.text())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::tools::lints::{Diagnostic, Severity};

    /// The names of the tags of a message, in their order; tags in tags are left out.
    fn tags(told: &Told) -> Vec<String> {
        let Some(Part::Text(text)) = told.parts.first() else {
            panic!("no text")
        };
        let mut found: Vec<String> = Vec::new();
        let mut open: Option<String> = None;
        for line in text.lines() {
            match &open {
                None => {
                    let name: String = line
                        .chars()
                        .skip(1)
                        .take_while(|it| it.is_alphanumeric() || *it == '_')
                        .collect();
                    assert!(
                        line.starts_with('<') && !name.is_empty(),
                        "{line} stands between the tags:\n{text}"
                    );
                    found.push(name.clone());
                    open = Some(name);
                }
                Some(name) if line == format!("</{name}>") => open = None,
                Some(_) => {}
            }
        }
        assert_eq!(open, None, "{text}");
        found
    }

    #[test]
    fn everything_has_its_place_and_the_query_is_last() {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in [
            ("src/a.rs", "one\n"),
            ("src/AGENTS.md", "Below src."),
            ("picture.png", "\u{89}"),
            (".cursor/rules/notes.mdc", "---\n---\nBy name."),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, text).expect("a file");
        }
        std::fs::write(folder.path().join("picture.png"), b"\x89PNG\r\n\x1a\n").expect("a file");
        let workspace = Arc::new(Workspace::open(folder.path()).expect("a workspace"));
        let mut rules = RuleSet::load(&workspace, crate::agent::prompt::rules::Trust::Whole);
        let (seen, transcript) = (Seen::default(), Transcript::default());
        let around = Surroundings {
            mode: Mode::Plan,
            prompt: &Facts::default(),
            was: None,
            workspace: Some(&workspace),
            transcript: &transcript,
            seen: &seen,
            files: None,
            findings: &Findings::default(),
        };
        let (mut watch, mut open) = (FileWatch::default(), Vec::new());
        let first = message_parts(
            "Fix @src/a.rs with @notes and @picture.png </user_query>",
            &around,
            &mut rules,
            &watch,
            &mut open,
        );
        assert_eq!(
            tags(&first),
            [
                "rules_update",
                "manual_workspace_rule",
                "attached_files",
                "system_reminder",
                "user_query"
            ]
        );
        assert!(matches!(first.parts.as_slice(), [Part::Text(_), Part::Image(_)]));
        assert_eq!(open, ["picture.png", "src/a.rs"]);
        let file = workspace.locate("src/a.rs").expect("a file");
        let bytes = std::fs::read(&file.path).expect("it is there");
        assert!(seen.check(&file, &bytes).is_ok(), "what came along was read");

        let file = workspace.locate("src/a.rs").expect("a file");
        watch.remember(&workspace, [&file.path]);
        std::fs::write(&file.path, "two\n").expect("a file");
        let found = |file: &std::path::Path| Diagnostic {
            file: file.to_owned(),
            line: 1,
            column: 1,
            severity: Severity::Error,
            message: "no".to_owned(),
            source: "checker".to_owned(),
            code: None,
        };
        // What is wrong in a file that nobody works on does not matter now.
        let other = workspace.locate("src/AGENTS.md").expect("a file");
        let findings = Findings::holding(&[found(&file.path), found(&other.path)]);
        let around = Surroundings {
            mode: Mode::Agent,
            was: Some(Mode::Plan),
            findings: &findings,
            ..around
        };
        let second = message_parts("Go on", &around, &mut rules, &watch, &mut open);
        assert_eq!(
            tags(&second),
            [
                "open_and_recently_viewed_files",
                "linter_errors",
                "edit_history",
                "system_reminder",
                "user_query"
            ]
        );
        let Some(Part::Text(text)) = second.parts.first() else {
            panic!("no text")
        };
        let said = "<linter_errors>\nsrc/a.rs:\n  1:1 error no\n</linter_errors>";
        assert!(text.contains(said), "{text}");
        let around = Surroundings {
            was: Some(Mode::Agent),
            workspace: None,
            ..around
        };
        let third = message_parts("@src/a.rs", &around, &mut rules, &watch, &mut open);
        assert_eq!(
            third.parts,
            [Part::Text("<user_query>\n@src/a.rs\n</user_query>".to_owned())]
        );
    }
}
