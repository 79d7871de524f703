//! What git says of the workspace at the start of a conversation.
//!
//! The user's own `git` is asked, so that their configuration holds; what the repository's could make it run is switched
//! off. A repository that configures filters is asked with those filters off.

use std::path::Path;

use crate::{
    agent::{
        cut::head,
        git::{filters, quiet},
        tags::name,
    },
    os::file,
    sandbox::{Place, Workspace},
};

/// A longer configuration of a repository is not read.
const CONFIG_BYTES: u64 = 1 << 20;
/// Files that are named.
const FILES: usize = 50;
/// All that is said.
const STATUS_BYTES: usize = 4 << 10;
/// The state of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// `None`: no commit is on any branch, or the head is detached.
    pub branch: Option<String>,
    /// As `git status --short --branch` has it, in lines; the last one says what was cut.
    pub text: String,
}

/// The git status of `workspace`; `None` without a repository or git, or if git takes too long.
pub async fn status(workspace: &Workspace) -> Option<Status> {
    let root = workspace.root();
    let repository = root.ancestors().map(|it| it.join(".git")).find(|it| it.exists())?;
    let filters = if is_plain(&repository) {
        Vec::new()
    } else {
        filters(root).await?
    };
    let arguments = [
        "status",
        "--short",
        "--branch",
        "-z",
        "--untracked-files=normal",
        "--ignore-submodules=all",
        "--",
        ".",
    ];
    let output = quiet(root)
        .args(filters.iter().flat_map(|it| ["-c", it.as_str()]))
        .args(arguments)
        .run()
        .await
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let is_hidden = |path: &str| workspace.locate(path).is_ok_and(|it| it.place == Place::Hidden);
    Some(read(
        &String::from_utf8_lossy(&output.stdout),
        output.truncated,
        is_hidden,
    ))
}

/// The repository's configuration can name no filter: then git need not be started a first time to list them.
///
/// A section's word cannot be written in any other way; what this does not understand (a worktree, an include) is not plain.
fn is_plain(repository: &Path) -> bool {
    if repository.join("commondir").exists() {
        return false;
    }
    let text = file::read_unlinked(&repository.join("config"), CONFIG_BYTES)
        .map(|it| String::from_utf8_lossy(&it).to_ascii_lowercase());
    text.is_ok_and(|it| !["filter", "include", "worktree"].iter().any(|word| it.contains(word)))
}

/// The output of `git status --short --branch -z`.
fn read(output: &str, is_truncated: bool, is_hidden: impl Fn(&str) -> bool) -> Status {
    let mut records = output.split_terminator('\0');
    let mut status = Status::default();
    let (mut shown, mut left) = (0, 0);
    let mut lines = String::new();
    while let Some(record) = records.next() {
        if let Some(head) = record.strip_prefix("## ") {
            let own = head.strip_prefix("No commits yet on ").unwrap_or(head);
            let own = own.split("...").next().unwrap_or(own);
            status.branch = Some(name(own)).filter(|_| !head.starts_with("HEAD (no branch)"));
            lines = format!("{}\n", cut(&format!("## {}", name(head))));
            continue;
        }
        let Some((state, path)) = record.split_at_checked(3) else {
            continue;
        };
        // The name before a renaming stands in a record of its own.
        let before = if state.starts_with(['R', 'C']) {
            records.next()
        } else {
            None
        };
        if is_hidden(path) {
            continue;
        }
        let state = name(state);
        let line = match before {
            Some(before) => format!("{state}{} -> {}\n", name(before), name(path)),
            None => format!("{state}{}\n", name(path)),
        };
        if shown < FILES && lines.len() + line.len() <= STATUS_BYTES - 64 {
            lines.push_str(&line);
            shown += 1;
        } else {
            left += 1;
        }
    }
    match (left, is_truncated) {
        (0, false) if shown == 0 => lines.push_str("nothing has changed since the last commit\n"),
        (0, false) => {}
        (left, false) => lines.push_str(&format!("[and {left} more files]\n")),
        (left, true) => lines.push_str(&format!("[and more than {left} more files]\n")),
    }
    status.text = lines;
    status
}

/// Names of branches have no limit that we could trust.
fn cut(line: &str) -> &str {
    head(line, 512).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use std::process;

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn run(root: &Path, arguments: &[&str]) {
        let output = process::Command::new("git")
            .arg("-C")
            .arg(root)
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b.c",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(arguments)
            .output()
            .expect("git is there");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    #[tokio::test]
    async fn a_real_repository() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        assert_eq!(status(&Workspace::open(root).expect("a workspace")).await, None);
        run(root, &["init", "-q", "-b", "main"]);
        let workspace = Workspace::open(root).expect("a workspace");
        let before = status(&workspace).await.expect("a repository");
        assert_eq!(before.branch.as_deref(), Some("main"));
        for (path, text) in [
            ("a b.rs", "1"),
            ("old.rs", "content that is long enough to be known again\n"),
            ("gone", "x"),
        ] {
            std::fs::write(root.join(path), text).expect("a file");
        }
        run(root, &["add", "."]);
        run(root, &["commit", "-q", "-m", "first"]);
        assert_eq!(
            status(&workspace).await.expect("a repository").text,
            "## main\nnothing has changed since the last commit\n"
        );
        run(root, &["mv", "old.rs", "new.rs"]);
        std::fs::remove_file(root.join("gone")).expect("it was there");
        for (path, text) in [("a b.rs", "2"), ("new\nline", ""), (".env", "KEY=1")] {
            std::fs::write(root.join(path), text).expect("a file");
        }
        let status = status(&workspace).await.expect("a repository");
        assert_eq!(
            status.text,
            "## main\n M a b.rs\n D gone\nR  old.rs -> new.rs\n?? new\\nline\n"
        );
    }

    /// Looking at a hostile repository runs nothing that it configures.
    #[tokio::test]
    async fn a_repository_runs_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        run(root, &["init", "-q", "-b", "main"]);
        for (path, text) in [("a.x", "1"), (".gitattributes", "*.x filter=evil diff=evil\n")] {
            std::fs::write(root.join(path), text).expect("a file");
        }
        run(root, &["add", "."]);
        run(root, &["commit", "-q", "-m", "first"]);
        let mark = root.join("ran");
        let line = format!("touch {}; cat", mark.display());
        for key in [
            "filter.evil.clean",
            "filter.evil.process",
            "core.fsmonitor",
            "core.pager",
            "diff.external",
            "diff.evil.command",
            "diff.evil.textconv",
        ] {
            run(root, &["config", key, &line]);
        }
        run(root, &["config", "filter.evil.required", "true"]);
        // Of the same size, so that git has to compare the content.
        std::fs::write(root.join("a.x"), "2").expect("a file");
        // It does run what is configured when it is asked plainly: the test tests something.
        process::Command::new("git")
            .arg("-C")
            .arg(root)
            .arg("status")
            .output()
            .expect("git is there");
        assert!(mark.exists(), "the trap is set");
        std::fs::remove_file(&mark).expect("it was there");
        std::fs::write(root.join("a.x"), "3").expect("a file");
        let workspace = Workspace::open(root).expect("a workspace");
        let status = status(&workspace).await.expect("a repository");
        assert!(status.text.contains(" M a.x\n"), "{}", status.text);
        assert!(!mark.exists(), "something was run");
    }

    #[test]
    fn only_a_configuration_without_filters_is_plain() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        assert!(!is_plain(root), "there is no configuration");
        for (text, expected) in [
            ("[core]\n\tbare = false\n", true),
            ("[FILTER \"x\"]\n\tclean = touch ran\n", false),
            ("[include]\n\tpath = ../evil\n", false),
            ("[includeIf \"gitdir:**\"]\n\tpath = ../evil\n", false),
            ("[extensions]\n\tworktreeConfig = true\n", false),
        ] {
            std::fs::write(root.join("config"), text).expect("a file");
            assert_eq!(is_plain(root), expected, "{text}");
        }
        std::fs::write(root.join("config"), "").expect("a file");
        std::fs::write(root.join("commondir"), "../..").expect("a file");
        assert!(!is_plain(root), "what counts stands elsewhere");
    }

    #[test]
    fn heads_of_all_kinds() {
        for (output, branch, head) in [
            ("## main\0", Some("main"), "## main"),
            (
                "## main...origin/main [ahead 1, behind 2]\0",
                Some("main"),
                "## main...origin/main [ahead 1, behind 2]",
            ),
            ("## No commits yet on main\0", Some("main"), "## No commits yet on main"),
            ("## HEAD (no branch)\0", None, "## HEAD (no branch)"),
        ] {
            let status = read(output, false, |_| false);
            assert_eq!(status.branch.as_deref(), branch, "{output}");
            assert_eq!(status.text.lines().next(), Some(head));
        }
    }

    #[test]
    fn many_files_are_counted() {
        let output: String = (0..80).map(|it| format!(" M file{it}\0")).collect();
        let text = read(&format!("## main\0{output}"), false, |it| it == "file3").text;
        assert_eq!(text.lines().count(), 52, "{text}");
        assert!(
            text.ends_with("[and 29 more files]\n") && !text.contains("file3\n"),
            "{text}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn no_output_is_too_odd(output in "([RMC? #]{0,3}[a<\n\u{1b}ü]{0,400}\0){0,60}") {
            let status = read(&output, true, |_| false);
            prop_assert!(status.text.len() <= STATUS_BYTES, "{}", status.text.len());
            prop_assert!(!status.text.contains(['\u{1b}', '<']), "{}", status.text);
        }
    }
}
