//! Marks of instrumentation: what debugging put into the code and must not stay there.

use std::{ffi::OsStr, path::Path};

use super::prompt::DEBUG_TAG;
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

/// Places of marks, as `path:line`, in tracked and untracked files, without ignored ones, binaries and documents; empty:
/// none are left.
pub fn find(workspace: &Workspace, stop: &Stop) -> Vec<String> {
    let mut found = Vec::new();
    let root = workspace.locate(".").and_then(|it| {
        let wanted = stop.clone();
        workspace.walker(&it, Bounds::until(move || wanted.is_set()))
    });
    let Ok(walker) = root else { return found };
    for entry in walker.entries().flatten() {
        if stop.is_set() || found.len() >= MOST {
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
                found.push(format!("{}:{}", path.display(), at + 1));
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
        let mut found = find(&workspace, &Stop::default());
        found.sort();
        assert_eq!(found, ["Makefile:2", "src/a.rs:2"]);
    }
}
