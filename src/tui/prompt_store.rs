//! What outlives the program: what was sent, by workspace, and the draft that was not.
//!
//! Both lie in the state folder, readable by their owner only. What cannot be kept costs nobody an answer: it is said
//! once, in the footer.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    io::Write as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::os::file::{self, Access};

/// More of the file is never read; the newest end of it is.
const HISTORY_BYTES: u64 = 8 << 20;

/// A longer message is remembered by its draft only.
const ENTRY_BYTES: usize = 64 << 10;

/// What was sent before, oldest first, each once: in one workspace, or in all of them.
pub fn history(state: &Path, workspace: Option<&Path>, most: usize) -> Vec<String> {
    let Ok(bytes) = file::read(&state.join("history.jsonl"), HISTORY_BYTES * 4) else {
        return Vec::new();
    };
    let from = bytes.len().saturating_sub(HISTORY_BYTES as usize);
    let text = String::from_utf8_lossy(bytes.get(from..).unwrap_or_default());
    let wanted = workspace.map(|it| it.to_string_lossy().into_owned());
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    // A line that is cut or was never whole is passed over.
    for line in text.lines().rev() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let place = entry.get("workspace").and_then(Value::as_str);
        if wanted.as_deref().is_some_and(|it| place != Some(it)) {
            continue;
        }
        let Some(text) = entry.get("text").and_then(Value::as_str) else {
            continue;
        };
        if seen.insert(text.to_owned()) {
            found.push(text.to_owned());
        }
        if found.len() == most {
            break;
        }
    }
    found.reverse();
    found
}

/// Remembers what was sent.
pub fn note(state: &Path, workspace: &Path, at_ms: u64, text: &str) -> Result<(), String> {
    if text.len() > ENTRY_BYTES {
        return Ok(());
    }
    file::private_folder(state).map_err(said)?;
    let path = state.join("history.jsonl");
    let entry = json!({ "at": at_ms, "workspace": workspace.to_string_lossy(), "text": text });
    let mut open = file::append(&path).map_err(said)?;
    // One write: other windows may be writing, too.
    open.write_all(format!("{entry}\n").as_bytes()).map_err(said)
}

/// Keeps the draft of a workspace; an empty one is forgotten.
pub fn keep_draft(state: &Path, workspace: &Path, draft: Option<&Value>) -> Result<(), String> {
    let path = draft_path(state, workspace);
    let Some(draft) = draft else {
        let _ = std::fs::remove_file(&path);
        return Ok(());
    };
    file::private_folder(state).map_err(said)?;
    file::private_folder(&state.join("drafts")).map_err(said)?;
    let stored = json!({ "workspace": workspace.to_string_lossy(), "draft": draft });
    file::write(&path, stored.to_string().as_bytes(), Access::Private).map_err(said)
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Takes the draft of a workspace, so that a second window does not have it, too.
pub fn take_draft(state: &Path, workspace: &Path) -> Option<Value> {
    let path = draft_path(state, workspace);
    let bytes = file::read(&path, 64 << 20).ok()?;
    let mut stored: Value = serde_json::from_slice(&bytes).ok()?;
    // Two folders may share a name for their file.
    if stored.get("workspace").and_then(Value::as_str) != Some(workspace.to_string_lossy().as_ref()) {
        return None;
    }
    let _ = std::fs::remove_file(&path);
    stored.get_mut("draft").map(Value::take)
}

fn draft_path(state: &Path, workspace: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    workspace.hash(&mut hasher);
    state.join("drafts").join(format!("{:016x}.json", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_found_by_workspace_and_everywhere() {
        let state = tempfile::tempdir().unwrap();
        let (shop, blog) = (Path::new("/shop"), Path::new("/blog"));
        for (at, workspace, text) in [
            (1, shop, "one"),
            (2, blog, "two\nlines"),
            (3, shop, "three"),
            (4, shop, "one"),
        ] {
            note(state.path(), workspace, at, text).unwrap();
        }
        assert_eq!(history(state.path(), Some(shop), 10), ["three", "one"]);
        assert_eq!(history(state.path(), None, 10), ["two\nlines", "three", "one"]);
        assert_eq!(history(state.path(), None, 1), ["one"]);
        let path = state.path().join("history.jsonl");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"text\": \"cut\n\xff\xfe\n[]\n");
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(history(state.path(), Some(shop), 10), ["three", "one"]);
        assert_eq!(history(Path::new("/nowhere"), None, 10), [] as [String; 0]);
    }

    #[test]
    fn a_draft_is_taken_once() {
        let state = tempfile::tempdir().unwrap();
        let (shop, blog) = (Path::new("/shop"), Path::new("/blog"));
        keep_draft(state.path(), shop, Some(&json!({ "text": "half" }))).unwrap();
        assert_eq!(take_draft(state.path(), blog), None);
        assert_eq!(take_draft(state.path(), shop), Some(json!({ "text": "half" })));
        assert_eq!(take_draft(state.path(), shop), None);
        keep_draft(state.path(), shop, Some(&json!({ "text": "half" }))).unwrap();
        keep_draft(state.path(), shop, None).unwrap();
        assert_eq!(take_draft(state.path(), shop), None);
    }
}
