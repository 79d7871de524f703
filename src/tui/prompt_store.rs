//! Sent messages, by workspace, and the unsent draft, stored across runs.
//!
//! Both lie in the state folder, readable by their owner only. What cannot be kept costs nobody an answer: it is said
//! once, in the footer.

use std::{
    collections::{BTreeMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::editor::field::Field;
use crate::os::file::{self, Access};

/// Most bytes of the file that are read: its newest end.
const HISTORY_BYTES: u64 = 8 << 20;

/// Largest message that is stored, in bytes.
const ENTRY_BYTES: usize = 64 << 10;

/// Time after the last change of a draft until it is written down.
const DRAFT_REST: Duration = Duration::from_secs(1);

/// Windows in one workspace whose drafts are stored at the same time.
const SLOTS: u32 = 16;

/// Writes the draft down while it changes, so that it is there again whatever becomes of the program. Each window in a
/// workspace has a file of its own, which it holds while it lives.
pub struct DraftKeeper {
    /// The state folder; `None` when nothing is to be remembered.
    state: Option<PathBuf>,
    /// The file of this window, once [`Self::take_up`] has chosen it.
    slot: Option<Slot>,
    /// The draft's version that was looked at last.
    seen: u64,
    /// When the draft is to be written down.
    pub due: Option<Instant>,
    /// A file holds a draft.
    is_stored: bool,
}

impl DraftKeeper {
    pub fn new(state: Option<PathBuf>) -> Self {
        Self {
            state,
            slot: None,
            seen: 0,
            due: None,
            is_stored: false,
        }
    }

    /// Takes a draft that a window which is gone left behind in `workspace`, to be offered: it was written for another
    /// conversation. Chooses the file for the drafts of this window.
    pub fn take_up(&mut self, workspace: &Path) -> Option<Value> {
        let state = self.state.as_ref()?;
        let mut draft = None;
        let folder = draft_path(state, workspace, 0);
        let entries = folder.parent().and_then(|it| it.read_dir().ok());
        let there: HashSet<_> = entries.into_iter().flatten().flatten().map(|it| it.path()).collect();
        for nth in 0..SLOTS {
            // A second draft that waits is offered by the next start.
            let is_wanted = |left: bool| if left { draft.is_none() } else { self.slot.is_none() };
            let path = draft_path(state, workspace, nth);
            if !is_wanted(there.contains(&path)) {
                continue;
            }
            let Some(slot) = Slot::free(state, path) else { continue };
            let left = slot.path.exists();
            if !is_wanted(left) {
                continue;
            }
            if left {
                // It stays in its file, which is this window's now: who is killed before a word is typed has lost nothing.
                draft = read_draft(&slot.path, workspace);
                if draft.is_some() {
                    self.slot = Some(slot);
                }
            } else {
                self.slot.get_or_insert(slot);
            }
        }
        self.is_stored = draft.is_some();
        draft
    }

    /// Notices a change of the draft.
    pub fn look(&mut self, field: &Field) {
        if field.version() != self.seen {
            self.seen = field.version();
            self.due = Some(Instant::now() + DRAFT_REST);
        }
    }

    /// Writes the draft down, and the one that was put aside; removes the file if there is neither.
    pub fn keep(&mut self, field: &Field, stash: Option<&Value>, workspace: &Path) {
        self.due = None;
        let draft = (!field.is_empty()).then(|| field.stored());
        let draft = match (draft, stash) {
            (Some(draft), Some(stash)) => Some(with_stash(draft, stash)),
            (draft, stash) => draft.or_else(|| stash.cloned()),
        };
        let Some(state) = self.state.as_ref().filter(|_| draft.is_some() || self.is_stored) else {
            return;
        };
        self.is_stored = draft.is_some();
        let Some(slot) = &self.slot else { return };
        if let Err(why) = keep_draft(state, &slot.path, workspace, draft.as_ref()) {
            tracing::warn!("the draft is not kept: {why}");
        }
    }
}

/// The file of one window's drafts, locked while the window lives.
struct Slot {
    path: PathBuf,
    /// `None` where there are no locks, or nothing can be written.
    _lock: Option<file::Lock>,
}

impl Slot {
    /// Locks the file. `None` if a living window has it.
    fn free(state: &Path, path: PathBuf) -> Option<Self> {
        let folders = file::private_folder(state).and_then(|()| file::private_folder(&state.join("drafts")));
        let lock = match folders.and_then(|()| file::lock(&path.with_extension("lock"))) {
            Ok(file::Locked::Ours(lock)) => Some(lock),
            Ok(file::Locked::Theirs { .. }) => return None,
            Err(error) => {
                tracing::debug!(%error, "a second window could take this draft");
                None
            }
        };
        Some(Self { path, _lock: lock })
    }
}

/// A stored draft that holds the one that was put aside beside it.
pub fn with_stash(mut draft: Value, stash: &Value) -> Value {
    if let Some(members) = draft.as_object_mut() {
        members.insert("stash".to_owned(), stash.clone());
    }
    draft
}

/// The draft that was put aside beside a stored one.
pub fn stash_of(draft: &Value) -> Option<Value> {
    draft.get("stash").cloned()
}

/// The messages sent before, oldest first, each once: of one workspace, or of all.
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

/// Stores a message that was sent.
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

/// Maximum number of commands whose uses are counted.
const MOST_COUNTED: usize = 200;

/// Count at which all counts are halved, so that new habits can overtake old ones.
const HALVED_AT: u32 = 100;

/// Returns how often each command was used; nothing if that is not known.
pub fn uses(state: &Path) -> BTreeMap<String, u32> {
    let bytes = file::read(&state.join("uses.json"), 64 << 10).unwrap_or_default();
    let found: BTreeMap<String, u32> = serde_json::from_slice(&bytes).unwrap_or_default();
    found.into_iter().take(MOST_COUNTED).collect()
}

/// Counts a use of a command. Other windows may do so at the same time.
pub fn count_use(state: &Path, name: &str) -> Result<(), String> {
    file::private_folder(state).map_err(said)?;
    let _held = file::lock_soon(&state.join("uses.lock")).map_err(said)?;
    let mut uses = uses(state);
    let count = uses.entry(name.to_owned()).or_default();
    *count = count.saturating_add(1);
    if *count >= HALVED_AT {
        for it in uses.values_mut() {
            *it /= 2;
        }
    }
    while uses.len() > MOST_COUNTED {
        let rarest = uses.iter().filter(|it| it.0 != name).min_by_key(|it| it.1);
        let Some(rarest) = rarest.map(|it| it.0.clone()) else {
            break;
        };
        uses.remove(&rarest);
    }
    let text = serde_json::to_vec(&uses).map_err(said)?;
    file::write(&state.join("uses.json"), &text, Access::Private).map_err(said)
}

/// Keeps the draft of a workspace; an empty one is forgotten.
fn keep_draft(state: &Path, path: &Path, workspace: &Path, draft: Option<&Value>) -> Result<(), String> {
    let Some(draft) = draft else {
        let _ = std::fs::remove_file(path);
        return Ok(());
    };
    file::private_folder(state).map_err(said)?;
    file::private_folder(&state.join("drafts")).map_err(said)?;
    let stored = json!({ "workspace": workspace.to_string_lossy(), "draft": draft });
    file::write(path, stored.to_string().as_bytes(), Access::Private).map_err(said)
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Reads the draft of a workspace. `None`: there is none, or it is that of another one.
fn read_draft(path: &Path, workspace: &Path) -> Option<Value> {
    let bytes = file::read(path, 64 << 20).ok()?;
    let mut stored: Value = serde_json::from_slice(&bytes).ok()?;
    // Two folders may share a name for their file.
    if stored.get("workspace").and_then(Value::as_str) != Some(workspace.to_string_lossy().as_ref()) {
        return None;
    }
    stored.get_mut("draft").map(Value::take)
}

fn draft_path(state: &Path, workspace: &Path, nth: u32) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    workspace.hash(&mut hasher);
    let name = match nth {
        0 => format!("{:016x}.json", hasher.finish()),
        nth => format!("{:016x}-{nth}.json", hasher.finish()),
    };
    state.join("drafts").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_counted_and_bounded() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(uses(state.path()), BTreeMap::new());
        for name in ["model", "/own", "model"] {
            count_use(state.path(), name).unwrap();
        }
        let counted = |name: &str| uses(state.path()).get(name).copied();
        assert_eq!(
            (counted("model"), counted("/own"), counted("theme")),
            (Some(2), Some(1), None)
        );
        for _ in 0..98 {
            count_use(state.path(), "model").unwrap();
        }
        assert_eq!(
            (counted("model"), counted("/own")),
            (Some(50), Some(0)),
            "old habits fade"
        );
        for at in 0..300 {
            count_use(state.path(), &format!("/{at}")).unwrap();
        }
        assert_eq!(
            (uses(state.path()).len(), counted("model"), counted("/299")),
            (200, Some(50), Some(1))
        );
        std::fs::write(state.path().join("uses.json"), "no JSON").unwrap();
        assert_eq!(uses(state.path()), BTreeMap::new());
    }

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
    fn a_draft_that_was_put_aside_is_kept_beside_another_one() {
        let state = tempfile::tempdir().unwrap();
        let (shop, mut field) = (Path::new("/shop"), Field::default());
        field.paste("first");
        let stash = field.stored();
        field.set("second");
        let mut keeper = DraftKeeper::new(Some(state.path().to_owned()));
        assert_eq!(keeper.take_up(shop), None);
        keeper.keep(&field, Some(&stash), shop);
        drop(keeper);
        let taken = DraftKeeper::new(Some(state.path().to_owned())).take_up(shop).unwrap();
        let mut offered = Field::default();
        offered.restore(&taken);
        assert_eq!(offered.text(), "second");
        offered.restore(&stash_of(&taken).unwrap());
        assert_eq!(offered.text(), "first");
    }

    #[test]
    fn a_draft_is_that_of_its_workspace_until_it_is_removed() {
        let state = tempfile::tempdir().unwrap();
        let (shop, blog) = (Path::new("/shop"), Path::new("/blog"));
        let path = draft_path(state.path(), shop, 0);
        let keep = |draft: Option<Value>| keep_draft(state.path(), &path, shop, draft.as_ref()).unwrap();
        keep(Some(json!({ "text": "half" })));
        assert_eq!(read_draft(&path, blog), None);
        assert_eq!(read_draft(&path, shop), Some(json!({ "text": "half" })));
        keep(None);
        assert_eq!(read_draft(&path, shop), None);
    }

    /// What one window stores and removes is its own; what windows that are gone have left is offered one by one.
    #[test]
    fn windows_in_one_workspace_do_not_touch_each_others_drafts() {
        let state = tempfile::tempdir().unwrap();
        let shop = Path::new("/shop");
        let window = || DraftKeeper::new(Some(state.path().to_owned()));
        let field = |text: &str| {
            let mut field = Field::default();
            field.set(text);
            field
        };
        let text_of = |draft: Option<Value>| {
            let mut field = Field::default();
            field.restore(&draft?);
            Some(field.text())
        };
        let (mut first, mut second) = (window(), window());
        assert_eq!(first.take_up(shop), None);
        first.keep(&field("first"), None, shop);
        assert_eq!(second.take_up(shop), None, "the first window lives");
        second.keep(&field("second"), None, shop);
        // The first one sends its message.
        first.keep(&field(""), None, shop);
        first.keep(&field("third"), None, shop);
        drop((first, second));
        let mut next = window();
        assert_eq!(text_of(next.take_up(shop)).as_deref(), Some("third"));
        let mut last = window();
        assert_eq!(text_of(last.take_up(shop)).as_deref(), Some("second"));
        // Each has a file of its own again.
        next.keep(&field("a"), None, shop);
        last.keep(&field("b"), None, shop);
        next.keep(&field(""), None, shop);
        drop((next, last));
        let mut one = window();
        assert_eq!(text_of(one.take_up(shop)).as_deref(), Some("b"));
        assert_eq!(window().take_up(shop), None, "another window has it");
        // It is killed before a word is typed.
        drop(one);
        assert_eq!(text_of(window().take_up(shop)).as_deref(), Some("b"));
    }
}
