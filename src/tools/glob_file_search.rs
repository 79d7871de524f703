//! `glob_file_search`: files by a pattern of their path, newest first; by an old form, by what their path is like.

use std::{cmp::Reverse, path::Path, time::SystemTime};

use globset::{GlobBuilder, GlobMatcher};
use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{CaseMatching, Normalization, Pattern},
};
use serde_json::{Map, Value, json};

use super::{
    arguments::DIRECTORY,
    cursor::{Answer, CursorCall, FOLDER, Names},
    tool::{Class, Fault, Input, OldForm, Outcome, Tool, names, schema},
    walk::{self, Filter, Until},
};
use crate::{config, protocol::CallSubject, sandbox::Workspace};

/// The description that a model is shown.
const ABOUT: &str = "\
    Find files by a glob pattern of their path, such as `*.rs` or `src/**/test_*.py`; newest first, at most 200. \
    Patterns match at any depth. Ignored files are left out.";

/// The tool `glob_file_search`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["Glob", "file_search", "glob"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "glob_pattern": { "type": "string", "description": "Patterns without **/ in front get it" },
                "target_directory": { "type": "string" }
            }),
            &["glob_pattern"],
        ),
        synonyms: &[
            ("glob_pattern", &["pattern", "query", "globPattern"]),
            ("target_directory", DIRECTORY),
        ],
        word: "find".into(),
        subject: CallSubject::Find,
        rule: Some(("Read", &["glob"])),
        is_basic: true,
        old_form: Some(OldForm { fold, kept: &[LIKE] }),
        cursor: Some(CursorCall {
            result: printed,
            ..CursorCall::new("globToolCall", &[("globPattern", PATTERN), ("targetDirectory", FOLDER)])
        }),
        examples: &[r#"{ "glob_pattern": "**/*" }"#, r#"{ "pattern": "*.rs" }"#],
        ..Tool::new(
            "glob_file_search",
            Class::Reads,
            walk::work("target_directory", |context, input, until| {
                search(&context.workspace, input, until)
            }),
        )
    }
}

/// The member that holds what is searched for by likeness.
pub const LIKE: &str = "query";

/// `file_search {query}`: words that are like a path, unless they are a pattern.
pub fn fold(given: &mut Map<String, Value>) {
    let has = |name: &str| given.get(name).is_some_and(|it| !it.is_null());
    if has("glob_pattern") || has("pattern") || has("globPattern") {
        // Kept only beside the pattern that it stands for.
        let is_pair = given.get(LIKE).is_some_and(|it| Some(it) == given.get("glob_pattern"));
        if !is_pair {
            given.remove(LIKE);
        }
        return;
    }
    match given.get(LIKE).and_then(Value::as_str) {
        Some(query) if !query.contains(['*', '?', '[', '{']) => {
            given.insert("glob_pattern".to_owned(), Value::String(query.to_owned()));
        }
        _ => {
            if let Some(query) = given.remove(LIKE) {
                given.insert("glob_pattern".to_owned(), query);
            }
        }
    }
}

const MOST_LIKE: usize = 10;

fn search(workspace: &Workspace, input: &Input, until: &Until) -> Result<Outcome, Fault> {
    let place = walk::directory(workspace, input.text("target_directory"))?;
    let like = input.text(LIKE);
    let pattern = input.text("glob_pattern").unwrap_or_default().trim();
    let matcher = if like.is_none() {
        Some(glob(workspace, pattern)?)
    } else {
        None
    };
    let listing = walk::files(&workspace.walker(&place, until.bounds())?, &Filter::default(), until);
    let is_whole = listing.is_whole;
    let shown = listing
        .files
        .iter()
        .map(|it| (walk::shown(workspace, it), it.as_path()));
    let (found, total) = match (like, matcher) {
        (Some(query), _) => nearest(shown, query),
        (None, Some(matcher)) => newest(
            shown.filter(|(it, _)| matcher.is_match(it)),
            config::size(until.limits.glob_files),
        ),
        (None, None) => (Vec::new(), 0),
    };
    let is_cut = !is_whole || (like.is_none() && found.len() < total);
    let mut text = found.join("\n");
    if found.is_empty() {
        text = format!("No files match `{}`.", walk::shortened(like.unwrap_or(pattern), 200));
    }
    if !is_whole {
        text.push_str(&format!(
            "\n[cut: the search stopped after {} s; narrow it with target_directory]",
            until.limits.search_time.as_secs()
        ));
    } else if is_cut {
        text.push_str(&format!(
            "\n[cut: {} of {total} files shown; narrow the pattern]",
            found.len()
        ));
    }
    Ok(Outcome {
        text,
        data: json!({ "files": found, "totalFiles": total, "truncated": is_cut }),
        is_truncated: is_cut,
        images: Vec::new(),
    })
}

/// Matches paths as they are shown.
fn glob(workspace: &Workspace, pattern: &str) -> Result<GlobMatcher, Fault> {
    let invalid = |it: String| Fault::arguments(format!("the glob `{pattern}` cannot be read: {it}"));
    if pattern.is_empty() {
        return Err(invalid("it is empty".to_owned()));
    }
    let root = workspace.root().to_string_lossy();
    let inside = pattern.strip_prefix("file://").unwrap_or(pattern);
    let inside = match inside.strip_prefix(&*root) {
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => inside,
    };
    let inside = inside.strip_prefix("./").unwrap_or(inside);
    // Of another tree: its files are shown by their whole path.
    let whole = if inside.starts_with("**/") || inside.starts_with('/') {
        inside.to_owned()
    } else {
        format!("**/{inside}")
    };
    // A directory stands for what is in it.
    let whole = if whole.ends_with('/') {
        format!("{whole}**")
    } else {
        whole
    };
    let glob = GlobBuilder::new(&whole).literal_separator(true).build();
    glob.map(|it| it.compile_matcher())
        .map_err(|it| invalid(it.kind().to_string()))
}

/// The newest, and how many there are.
fn newest<'a>(files: impl Iterator<Item = (String, &'a Path)>, most: usize) -> (Vec<String>, usize) {
    let mut dated: Vec<_> = files
        .map(|(shown, path)| {
            let changed = std::fs::symlink_metadata(path).and_then(|it| it.modified());
            (Reverse(changed.unwrap_or(SystemTime::UNIX_EPOCH)), shown)
        })
        .collect();
    dated.sort_unstable();
    let total = dated.len();
    (dated.into_iter().take(most).map(|(_, it)| it).collect(), total)
}

/// The paths that are most like the query.
fn nearest<'a>(files: impl Iterator<Item = (String, &'a Path)>, query: &str) -> (Vec<String>, usize) {
    let query: String = query.chars().take(200).collect();
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::parse(&query, CaseMatching::Ignore, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut scored: Vec<_> = files
        .filter_map(|(shown, _)| {
            let score = pattern.score(Utf32Str::new(&shown, &mut buffer), &mut matcher)?;
            Some((Reverse(score), shown.len(), shown))
        })
        .collect();
    scored.sort_unstable();
    let total = scored.len();
    (scored.into_iter().take(MOST_LIKE).map(|(_, _, it)| it).collect(), total)
}

/// Names of the pattern in documents.
const PATTERN: Names = &["glob_pattern", "globPattern", "pattern"];

/// The result in Cursor's shape.
fn printed(answer: &Answer<'_>) -> Value {
    let files = answer.list("files");
    json!({
        "pattern": answer.arguments.text(PATTERN),
        "path": answer.absolute(answer.arguments.text(FOLDER)),
        "totalFiles": answer.members.get("totalFiles").cloned().unwrap_or_else(|| files.len().into()),
        "files": files,
        "clientTruncated": answer.is_truncated,
        "ripgrepTruncated": false,
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::walk::tests::{Tree, input},
        *,
    };

    fn run(tree: &Tree, given: Value) -> String {
        match search(&tree.workspace, &input(&tool(), given), &Until::done()) {
            Ok(outcome) => outcome.text,
            Err(fault) => fault.text(),
        }
    }

    #[test]
    fn patterns_match_at_any_depth_and_the_newest_comes_first() {
        let tree = Tree::new(&[
            ("src/net/http.rs", b"x"),
            ("src/main.rs", b"x"),
            ("build.rs", b"x"),
            (".github/ci.yml", b"x"),
            ("web/a.ts", b"x"),
            ("web/b.tsx", b"x"),
            (".git/config", b"x"),
            ("target/x.rs", b"x"),
            (".gitignore", b"target/\n"),
        ]);
        let root = tree.workspace.root().to_string_lossy().into_owned();
        let absolute = format!("{root}/src/*.rs");
        let cases = [
            (
                json!({ "glob_pattern": "*.rs" }),
                "src/net/http.rs\nsrc/main.rs\nbuild.rs",
            ),
            (
                json!({ "pattern": "**/*.rs" }),
                "src/net/http.rs\nsrc/main.rs\nbuild.rs",
            ),
            (json!({ "glob_pattern": "src/*.rs" }), "src/main.rs"),
            (
                json!({ "glob_pattern": "./src/**/*.rs" }),
                "src/net/http.rs\nsrc/main.rs",
            ),
            (json!({ "glob_pattern": absolute }), "src/main.rs"),
            (json!({ "glob_pattern": "*.{ts,tsx}" }), "web/a.ts\nweb/b.tsx"),
            (json!({ "glob_pattern": "*.rs", "path": "src/net" }), "src/net/http.rs"),
            (
                json!({ "glob_pattern": "src/**/*.rs", "target_directory": "src/net/" }),
                "src/net/http.rs",
            ),
            (json!({ "glob_pattern": "web/" }), "web/a.ts\nweb/b.tsx"),
            (json!({ "glob_pattern": "*.yml" }), ".github/ci.yml"),
            (json!({ "glob_pattern": "config" }), "No files match `config`."),
            (json!({ "glob_pattern": "x.rs" }), "No files match `x.rs`."),
            (json!({ "query": "srchttp" }), "src/net/http.rs"),
            (json!({ "query": "*.tsx" }), "web/b.tsx"),
        ];
        for (given, expected) in cases {
            assert_eq!(run(&tree, given.clone()), expected, "{given}");
        }
        let faults = [
            (
                json!({ "glob_pattern": "a{" }),
                "Error [TOOL_ARGUMENTS_INVALID]: the glob `a{` cannot be read: ",
            ),
            (
                json!({ "glob_pattern": "" }),
                "Error [TOOL_ARGUMENTS_INVALID]: the glob `` cannot be read: it is empty",
            ),
            (
                json!({ "glob_pattern": "x", "path": "nowhere" }),
                "Error [FILE_NOT_FOUND]: `nowhere` does not exist",
            ),
            (
                json!({ "glob_pattern": "x", "path": "build.rs" }),
                "Error [TOOL_FAILED]: `build.rs` is no directory",
            ),
        ];
        for (given, expected) in faults {
            let text = run(&tree, given.clone());
            assert!(text.starts_with(expected), "{given}: {text}");
        }
    }

    #[test]
    fn two_hundred_are_enough() {
        let names: Vec<_> = (0..205).map(|it| format!("f{it:03}")).collect();
        let files: Vec<_> = names.iter().map(|it| (it.as_str(), &b""[..])).collect();
        let tree = Tree::new(&files);
        let outcome = search(
            &tree.workspace,
            &input(&tool(), json!({ "glob_pattern": "*" })),
            &Until::done(),
        )
        .expect("files");
        let lines: Vec<_> = outcome.text.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[199]), (201, "f000", "f199"));
        assert_eq!(lines[200], "[cut: 200 of 205 files shown; narrow the pattern]");
        assert_eq!(outcome.data["totalFiles"], 205);
        assert_eq!(outcome.data["files"].as_array().map(Vec::len), Some(200));
        assert!(outcome.is_truncated);
        let like = run(&tree, json!({ "query": "f1" }));
        assert_eq!(like.lines().count(), 10);
    }
}
