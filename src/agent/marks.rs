//! Marks of instrumentation: what debugging put into the code and must not stay there.

use std::{collections::BTreeMap, ffi::OsStr, path::Path};

use super::{history::told::MarkBaseline, prompt::DEBUG_TAG};
use crate::{
    os::file,
    sandbox::{Bounds, Workspace},
    tools::Stop,
};

/// A larger file was not written by hand.
const FILE_BYTES: u64 = 4 << 20;
/// More are not worth counting.
const MOST: usize = 200;

/// Returns true for documents: one that names the tag instruments nothing.
fn is_prose(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let prose = ["md", "markdown", "mdc", "rst", "adoc", "org", "txt", "tex", "pdf"];
    prose.iter().any(|it| extension.eq_ignore_ascii_case(it))
}

/// Lines with marks by file: the number of each, and its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(BTreeMap<String, Vec<(usize, String)>>);

impl Marks {
    /// Number of lines.
    fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// The lines, as something later is compared with.
    pub fn baseline(&self) -> MarkBaseline {
        let texts = |lines: &Vec<(usize, String)>| lines.iter().map(|it| it.1.clone()).collect();
        MarkBaseline(
            self.0
                .iter()
                .map(|(path, lines)| (path.clone(), texts(lines)))
                .collect(),
        )
    }

    /// Places of lines that were not there before, as `path:line`. A line that has only moved within its file was.
    pub fn since(&self, baseline: &MarkBaseline) -> Vec<String> {
        let mut new = Vec::new();
        for (path, lines) in &self.0 {
            let mut before = baseline.0.get(path).cloned().unwrap_or_default();
            for (number, text) in lines {
                match before.iter().position(|it| it == text) {
                    Some(at) => drop(before.swap_remove(at)),
                    None => new.push(format!("{path}:{number}")),
                }
            }
        }
        new
    }
}

/// The marks in tracked and untracked files, without ignored ones, binaries and documents.
pub fn find(workspace: &Workspace, stop: &Stop) -> Marks {
    let mut found = Marks::default();
    let root = workspace.locate(".").and_then(|it| {
        let wanted = stop.clone();
        workspace.walker(&it, Bounds::until(move || wanted.is_set()))
    });
    let Ok(walker) = root else { return found };
    for entry in walker.entries().flatten() {
        if stop.is_set() || found.count() >= MOST {
            break;
        }
        let is_file = entry.file_type().is_some_and(|it| it.is_file());
        let is_small = entry.metadata().is_ok_and(|it| it.len() <= FILE_BYTES);
        if !is_file || !is_small {
            continue;
        }
        let Ok(text) = file::read_unlinked(entry.path(), FILE_BYTES) else {
            continue;
        };
        if text.contains(&0) || is_prose(entry.path()) {
            continue;
        }
        let tag = DEBUG_TAG.as_bytes();
        let path = entry.path().strip_prefix(workspace.root()).unwrap_or(entry.path());
        for (at, line) in text.split(|it| *it == b'\n').enumerate() {
            if line.windows(tag.len()).any(|it| it == tag) {
                let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
                let lines = found.0.entry(path.display().to_string()).or_default();
                lines.push((at + 1, text));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_has_marks() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        let line = format!("let a = 1;\nprintln!(\"x\"); // {DEBUG_TAG}\n");
        write("src/a.rs", line.as_bytes());
        write("Makefile", line.as_bytes());
        write("docs/debugging.md", line.as_bytes());
        write("NOTES.TXT", line.as_bytes());
        write("a.out", [line.as_bytes(), b"\0\x01"].concat().as_slice());
        write(".gitignore", b"target/\n");
        write("target/a.d", line.as_bytes());
        let workspace = Workspace::open(folder.path()).expect("a workspace");
        let found = find(&workspace, &Stop::default());
        assert_eq!(found.since(&MarkBaseline::default()), ["Makefile:2", "src/a.rs:2"]);
    }

    #[test]
    fn what_was_marked_before_is_not_a_mark_of_this_debugging() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        let mark = format!("log(1); // {DEBUG_TAG}\n");
        write("old.rs", &mark);
        write("both.rs", &format!("a();\n{mark}"));
        let workspace = Workspace::open(folder.path()).expect("a workspace");
        let marks = || find(&workspace, &Stop::default());
        let baseline = marks().baseline();
        assert_eq!(marks().since(&baseline), Vec::<String>::new());
        // The old line moves, the same one comes once more, and another file gets one.
        write("both.rs", &format!("a();\nb();\n{mark}{mark}"));
        write("new.rs", &mark);
        assert_eq!(marks().since(&baseline), ["both.rs:4", "new.rs:1"]);
        let text = serde_json::to_string(&baseline).expect("plain values");
        let read: MarkBaseline = serde_json::from_str(&text).expect("what was written");
        assert_eq!(read, baseline, "a session keeps it");
    }
}
