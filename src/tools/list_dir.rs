//! `list_dir`: what is in a directory, and what is in what is in it.

mod tree;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::json;

use self::tree::Folder;
use super::{
    arguments::DIRECTORY,
    cursor::{CursorCall, FOLDER},
    tool::{Class, Fault, Input, Outcome, Tool, names, schema},
    walk::{self, Until},
};
use crate::{
    config,
    protocol::CallSubject,
    sandbox::{Located, Walk, Workspace},
};

/// The description that a model is shown.
const ABOUT: &str = "\
    List a directory, two levels deep. Directories end in `/`; of big ones only the number of files is told. \
    Entries that begin with a dot and ignored ones are left out.";

/// The tool `list_dir`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["LS", "ls"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "target_directory": { "type": "string" },
                "ignore_globs": { "type": "array", "items": { "type": "string" } }
            }),
            &["target_directory"],
        ),
        synonyms: &[
            ("target_directory", DIRECTORY),
            ("ignore_globs", &["ignore", "ignoreGlobs"]),
        ],
        word: "list".into(),
        subject: CallSubject::List,
        foreign_names: &["list_directory"],
        is_basic: true,
        cursor: Some(CursorCall {
            complete: |own, _| {
                own.entry("path").or_insert_with(|| ".".into());
                own.entry("ignore").or_insert_with(|| json!([]));
            },
            has_id: true,
            result: |it| {
                let root = it.absolute(it.arguments.text(FOLDER));
                json!({ "directoryTreeRoot": Folder::of(&it.list("entries")).to_json(&root, !it.is_truncated) })
            },
            ..CursorCall::new(
                "lsToolCall",
                &[("path", FOLDER), ("ignore", &["ignore_globs", "ignore"])],
            )
        }),
        examples: &[r#"{ "target_directory": "." }"#, r#"{ "path": "src" }"#],
        ..Tool::new(
            "list_dir",
            Class::Reads,
            walk::work("target_directory", |context, input, until| {
                list(&context.workspace, input, until)
            }),
        )
    }
}

/// A directory below the listed one with more entries than this is told in one line.
const MOST_INSIDE: usize = 50;
/// Entries that are counted; beyond it, numbers are followed by a plus.
const MOST_COUNTED: usize = 200_000;
/// Endings that a summary names.
const MOST_ENDINGS: usize = 3;

/// The contents of a directory.
#[derive(Default)]
struct Directory {
    directories: BTreeMap<String, Directory>,
    files: Vec<String>,
}

fn list(workspace: &Workspace, input: &Input, until: &Until) -> Result<Outcome, Fault> {
    let place = walk::directory(workspace, input.text("target_directory"))?;
    let ignored = globs(&input.texts("ignore_globs"))?;
    let (tree, is_whole) = tree(&workspace.walker(&place, until.bounds())?, &place, &ignored, until);
    let mut rows = Rows {
        most: config::size(until.limits.list_entries),
        ..Rows::default()
    };
    rows.directory(&tree, "", 0);
    let total = rows.total;
    let is_cut = rows.shown.len() < total || !is_whole;
    let mut text = rows.shown.join("\n");
    if rows.shown.is_empty() {
        text = format!("`{}` has no entries to show.", place.shown);
    }
    if rows.shown.len() < total {
        text.push_str(&format!(
            "\n[cut: {} of {total} entries shown; list a directory below it]",
            rows.shown.len()
        ));
    } else if !is_whole {
        text.push_str("\n[cut: there are too many entries to count them all]");
    }
    Ok(Outcome {
        text,
        data: json!({ "entries": rows.entries, "truncated": is_cut }),
        is_truncated: is_cut,
        images: Vec::new(),
    })
}

/// Matches paths below the listed directory.
fn globs(globs: &[&str]) -> Result<GlobSet, Fault> {
    let mut set = GlobSetBuilder::new();
    for written in globs.iter().map(|it| it.trim()).filter(|it| !it.is_empty()) {
        let glob = written.strip_prefix("./").unwrap_or(written).trim_end_matches('/');
        let glob = glob.strip_suffix("/**").unwrap_or(glob);
        let glob = if glob.starts_with("**/") {
            glob.to_owned()
        } else {
            format!("**/{glob}")
        };
        let glob = GlobBuilder::new(&glob).literal_separator(true).build().map_err(|it| {
            let message = format!("the glob `{written}` cannot be read: {}", it.kind());
            Fault::arguments(message)
        })?;
        set.add(glob);
    }
    set.build()
        .map_err(|it| Fault::arguments(format!("the globs cannot be read: {it}")))
}

/// Everything below a place, and whether all of it is in the tree.
fn tree(walker: &Walk, place: &Located, ignored: &GlobSet, until: &Until) -> (Directory, bool) {
    let mut tree = Directory::default();
    let mut left: Option<PathBuf> = None;
    let mut count = 0;
    for entry in walker.entries() {
        if until.is_over() || count >= MOST_COUNTED {
            return (tree, false);
        }
        let Ok(entry) = entry else {
            continue;
        };
        let Ok(path) = entry.path().strip_prefix(&place.path) else {
            continue;
        };
        if path.as_os_str().is_empty() || left.as_ref().is_some_and(|it| path.starts_with(it)) {
            continue;
        }
        let is_directory = entry.file_type().is_some_and(|it| it.is_dir());
        let is_dotted = entry.file_name().as_encoded_bytes().starts_with(b".");
        if is_dotted || ignored.is_match(path) {
            // Nothing below it either.
            if is_directory {
                left = Some(path.to_owned());
            }
            continue;
        }
        count += 1;
        tree.insert(path, is_directory);
    }
    (tree, !walker.is_cut())
}

impl Directory {
    fn insert(&mut self, path: &Path, is_directory: bool) {
        let mut at = self;
        let mut parts = path
            .components()
            .map(|it| it.as_os_str().to_string_lossy().into_owned());
        let Some(name) = parts.next_back() else {
            return;
        };
        for part in parts {
            at = at.directories.entry(part).or_default();
        }
        if is_directory {
            at.directories.entry(name).or_default();
        } else {
            at.files.push(name);
        }
    }

    fn size(&self) -> usize {
        self.directories.len() + self.files.len()
    }

    /// Entries at any depth, and the files by their endings.
    fn count(&self, endings: &mut BTreeMap<String, usize>) -> usize {
        for file in &self.files {
            let ending = Path::new(file).extension().map(|it| it.to_string_lossy().into_owned());
            *endings.entry(ending.unwrap_or_default()).or_default() += 1;
        }
        let below: usize = self.directories.values().map(|it| it.count(endings)).sum();
        below + self.size()
    }

    /// `[152 files: 91 *.js, 40 *.css]` where that says more than the entries would.
    fn summary(&self) -> Option<String> {
        let mut endings = BTreeMap::new();
        if self.count(&mut endings) <= MOST_INSIDE {
            return None;
        }
        let files: usize = endings.values().sum();
        let mut common: Vec<_> = endings.into_iter().filter(|(ending, _)| !ending.is_empty()).collect();
        common.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        let common = common
            .iter()
            .take(MOST_ENDINGS)
            .map(|(ending, count)| format!("{count} *.{ending}"));
        let common = common.collect::<Vec<_>>().join(", ");
        let files = if files == 1 {
            "1 file".to_owned()
        } else {
            format!("{files} files")
        };
        Some(if common.is_empty() {
            format!("[{files}]")
        } else {
            format!("[{files}: {common}]")
        })
    }
}

/// The listing, as far as there is room.
#[derive(Default)]
struct Rows {
    shown: Vec<String>,
    /// The same as paths below the directory.
    entries: Vec<String>,
    total: usize,
    /// Number of entries that are shown.
    most: usize,
}

impl Rows {
    fn directory(&mut self, directory: &Directory, path: &str, depth: usize) {
        let indent = "  ".repeat(depth);
        for (name, inside) in &directory.directories {
            let entry = format!("{path}{name}/");
            // What is not opened is summed up, unless it is small.
            let is_open = depth == 0 && inside.size() <= MOST_INSIDE;
            match inside.summary().filter(|_| !is_open) {
                Some(summary) => self.push(format!("{indent}{name}/ {summary}"), &entry),
                None => self.push(format!("{indent}{name}/"), &entry),
            }
            if is_open {
                self.directory(inside, &entry, depth + 1);
            }
        }
        let mut files: Vec<_> = directory.files.iter().collect();
        files.sort();
        for name in files {
            self.push(format!("{indent}{name}"), &format!("{path}{name}"));
        }
    }

    fn push(&mut self, row: String, entry: &str) {
        self.total += 1;
        if self.shown.len() < self.most {
            self.shown.push(row);
            self.entries.push(entry.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{
        super::walk::tests::{Tree, input},
        *,
    };

    fn run(tree: &Tree, given: Value) -> String {
        match list(&tree.workspace, &input(&tool(), given), &Until::done()) {
            Ok(outcome) => outcome.text,
            Err(fault) => fault.text(),
        }
    }

    fn tree(names: &[String]) -> Tree {
        let files: Vec<_> = names.iter().map(|it| (it.as_str(), &b""[..])).collect();
        Tree::new(&files)
    }

    #[test]
    fn two_levels_are_shown_and_big_ones_are_counted() {
        let mut names: Vec<_> = [
            "src/net/http.rs",
            "src/main.rs",
            "Cargo.toml",
            ".env.example",
            ".github/ci.yml",
            "out/x.o",
        ]
        .map(str::to_owned)
        .into();
        names.extend((0..91).map(|it| format!("web/dist/{it}.js")));
        names.extend((0..40).map(|it| format!("web/dist/css/{it}.css")));
        names.extend((0..21).map(|it| format!("web/dist/LICENSE{it}")));
        names.extend((0..51).map(|it| format!("data/{it:02}.csv")));
        let tree = tree(&names);
        std::fs::write(tree.folder.path().join(".gitignore"), "out/\n").expect("a file");
        std::fs::create_dir(tree.folder.path().join("empty")).expect("a folder");
        assert_eq!(
            run(&tree, json!({ "target_directory": "." })),
            "data/ [51 files: 51 *.csv]\nempty/\nsrc/\n  net/\n  main.rs\nweb/\n  dist/ [152 files: 91 *.js, 40 *.css]\nCargo.toml"
        );
        assert_eq!(
            run(&tree, json!({ "relative_workspace_path": "src" })),
            "net/\n  http.rs\nmain.rs"
        );
        assert_eq!(
            run(&tree, json!({ "path": "empty" })),
            "`empty` has no entries to show."
        );
        assert_eq!(
            run(
                &tree,
                json!({ "path": ".", "ignore_globs": ["web", "*.toml", "**/net/**", "data/"] })
            ),
            "empty/\nsrc/\n  main.rs"
        );
        assert_eq!(
            run(&tree, json!({ "path": "Cargo.toml" })),
            "Error [TOOL_FAILED]: `Cargo.toml` is no directory\nRead it with `read_file`."
        );
        let outcome = list(
            &tree.workspace,
            &input(&tool(), json!({ "path": "src" })),
            &Until::done(),
        )
        .expect("a list");
        assert_eq!(
            outcome.data,
            json!({ "entries": ["net/", "net/http.rs", "main.rs"], "truncated": false })
        );
    }

    #[test]
    fn five_hundred_are_enough() {
        let tree = tree(&(0..600).map(|it| format!("f{it}")).collect::<Vec<_>>());
        let text = run(&tree, json!({ "path": "." }));
        assert_eq!(text.lines().count(), 501);
        assert!(text.ends_with("[cut: 500 of 600 entries shown; list a directory below it]"));
    }
}
