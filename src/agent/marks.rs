//! Marks of instrumentation: what debugging put into the code and must not stay there.

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

/// Places of marks, as `path:line`, in tracked and untracked files, without ignored ones; empty: none are left.
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
