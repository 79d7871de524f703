//! What files were before the agent changed them, so that it can be undone.
//!
//! For each message of the user's, the bytes of a file before its first change are kept under their hash, beside a list that
//! is only ever appended to: a crash loses nothing that was listed. What does not fit is not kept, the oldest first, and
//! a restoration says so. Nothing here fails a change: an edit without a way back is better than none on a full disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Change, Located, Place, Refused, Seen, Workspace};
use crate::{os::file, protocol::Operation};

/// What one conversation may keep.
const MOST_BYTES: u64 = 256 << 20;
/// Of so many conversations; the ones that were used longest ago go.
const MOST_CONVERSATIONS: usize = 64;
/// More of the list is not read.
const LONGEST_LIST: u64 = 64 << 20;

/// The store of one conversation.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    is_made: OnceLock<()>,
    most_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The message that changes belong to, counted from 1.
    turn: u64,
    entries: Vec<Entry>,
    /// Nothing is known of messages before this one.
    first: u64,
    /// Of what is kept, by hash.
    sizes: BTreeMap<String, u64>,
}

/// A file that was changed under a message.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    turn: u64,
    path: PathBuf,
    before: Before,
    /// The hash of what the agent left; none: nothing, or it did not come to it.
    after: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    File { hash: String, mode: u32 },
    Lost,
}

/// A line of the list. `after` repeats the path of an entry of the same turn.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Before {
        turn: u64,
        path: PathBuf,
        #[serde(default)]
        hash: Option<String>,
        #[serde(default)]
        mode: u32,
    },
    After {
        turn: u64,
        path: PathBuf,
        hash: Option<String>,
    },
    /// What was kept before this turn is gone.
    Forgot { before: u64 },
}

/// How files become again what they were.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restoration {
    /// In order of their names; made by [`Checkpoints::restore`].
    pub changes: Vec<Change>,
    /// Those among them that somebody else has changed since the agent did: that would be lost.
    pub foreign: Vec<Located>,
    /// Files of which nothing was kept.
    pub lost: Vec<PathBuf>,
    /// What was kept for the first of the messages is gone: there was no room for it.
    pub is_partial: bool,
}

impl Checkpoints {
    /// The store of the conversation `name` below `folder`. Both are made when there is something to keep; then old
    /// conversations are pruned.
    pub fn open(folder: &Path, name: &str) -> io::Result<Self> {
        let own = folder.join(folder_name(name));
        let mut state = State::default();
        match file::read(&own.join("list"), LONGEST_LIST) {
            Ok(bytes) => state.load(&bytes),
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(io::Error::other(error)),
        }
        let kept = fs::read_dir(own.join("kept")).into_iter().flatten().flatten();
        for entry in kept {
            let size = entry.metadata().map_or(0, |it| it.len());
            state
                .sizes
                .insert(entry.file_name().to_string_lossy().into_owned(), size);
        }
        Ok(Self {
            folder: own,
            is_made: OnceLock::new(),
            most_bytes: MOST_BYTES,
            state: Mutex::new(state),
        })
    }

    /// A message of the user's begins: gives its number, counted from 1 over the whole conversation.
    pub fn begin(&self) -> u64 {
        let mut state = self.lock();
        state.turn += 1;
        state.turn
    }

    /// Keeps what a file is, if this is its first change under the message: its bytes and its mode.
    pub(super) fn take(&self, path: &Path, was: Option<(&[u8], u32)>) {
        let mut state = self.lock();
        let turn = state.turn;
        if state.entries.iter().any(|it| it.turn == turn && it.path == path) {
            return;
        }
        let before = match was {
            None => Before::Nothing,
            Some((bytes, mode)) => match self.store(&mut state, bytes) {
                Ok(hash) => Before::File { hash, mode },
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "a file cannot be kept for undoing");
                    Before::Lost
                }
            },
        };
        let (hash, mode) = match &before {
            Before::Nothing => (None, 0),
            Before::File { hash, mode } => (Some(hash.clone()), *mode),
            Before::Lost => (Some(String::new()), 0),
        };
        self.list(&Line::Before {
            turn,
            path: path.to_owned(),
            hash,
            mode,
        });
        state.entries.push(Entry {
            turn,
            path: path.to_owned(),
            before,
            after: None,
        });
    }

    /// What the agent has made of a file.
    pub(super) fn left(&self, path: &Path, bytes: Option<&[u8]>) {
        let mut state = self.lock();
        let turn = state.turn;
        let hash = bytes.map(hashed);
        let entry = state
            .entries
            .iter_mut()
            .rev()
            .find(|it| it.turn == turn && it.path == path);
        if let Some(entry) = entry {
            entry.after.clone_from(&hash);
            self.list(&Line::After {
                turn,
                path: path.to_owned(),
                hash,
            });
        }
    }

    /// Numbers of the messages under which files were changed, and which files.
    pub fn turns(&self) -> BTreeMap<u64, BTreeSet<PathBuf>> {
        let mut turns: BTreeMap<u64, BTreeSet<PathBuf>> = BTreeMap::new();
        for entry in &self.lock().entries {
            turns.entry(entry.turn).or_default().insert(entry.path.clone());
        }
        turns
    }

    /// What brings back the files as they were before the message `turn` and all after it.
    pub fn restoration(&self, workspace: &Workspace, turn: u64) -> Result<Restoration, Refused> {
        let mut wanted: BTreeMap<&Path, (&Before, Option<&String>)> = BTreeMap::new();
        let state = self.lock();
        for entry in state.entries.iter().filter(|it| it.turn >= turn) {
            let known = wanted.entry(&entry.path).or_insert((&entry.before, None));
            known.1 = entry.after.as_ref();
        }
        let mut found = Restoration {
            is_partial: turn < state.first,
            ..Restoration::default()
        };
        for (path, (before, after)) in wanted {
            let file = workspace.located(path)?;
            let new: Option<Arc<[u8]>> = match before {
                Before::Nothing => None,
                Before::File { hash, .. } => match self.kept(hash) {
                    Some(bytes) => Some(bytes.into()),
                    None => {
                        found.lost.push(path.to_owned());
                        continue;
                    }
                },
                Before::Lost => {
                    found.lost.push(path.to_owned());
                    continue;
                }
            };
            // What has left the workspace, or is hidden now, is not ours to touch.
            if file.path != path || !matches!(file.place, Place::Inside | Place::Added) {
                found.lost.push(path.to_owned());
                continue;
            }
            let old: Option<Arc<[u8]>> = match workspace.read(&file, self.most_bytes) {
                Ok(bytes) => Some(bytes.into()),
                Err(Refused::Missing(_)) => None,
                Err(other) => return Err(other),
            };
            if old == new {
                continue;
            }
            if old.as_deref().map(hashed).as_ref() != after {
                found.foreign.push(file.clone());
            }
            let operation = match (&old, &new) {
                (None, _) => Operation::Create,
                (Some(_), None) => Operation::Delete,
                (Some(_), Some(_)) => Operation::Edit,
            };
            found.changes.push(Change {
                file,
                operation,
                to: None,
                old,
                new,
                hunks: Vec::new(),
            });
        }
        Ok(found)
    }

    /// Makes the changes of a restoration, which are a change like any other and can be undone themselves.
    pub fn restore(&self, workspace: &Workspace, seen: &Seen, restoration: &Restoration) -> Result<(), Refused> {
        workspace.commit(seen, &restoration.changes)?;
        // Files that are back have the mode they had.
        let state = self.lock();
        for change in restoration
            .changes
            .iter()
            .filter(|it| it.operation == Operation::Create)
        {
            let entry = state.entries.iter().rev().find(|it| {
                it.path == change.file.path && matches!((&it.before, &change.new), (Before::File { hash, .. }, Some(new)) if *hash == hashed(new))
            });
            if let Some(Before::File { mode, .. }) = entry.map(|it| &it.before) {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(*mode);
                let opened = workspace.open_file(
                    &change.file,
                    rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK,
                    rustix::fs::Mode::empty(),
                );
                opened.and_then(|it| fs::File::from(it).set_permissions(mode)).ok();
            }
        }
        Ok(())
    }

    /// Puts bytes under their hash, making room for them.
    fn store(&self, state: &mut State, bytes: &[u8]) -> io::Result<String> {
        let hash = hashed(bytes);
        if state.sizes.contains_key(&hash) {
            return Ok(hash);
        }
        let size = bytes.len() as u64;
        if size > self.most_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        while state.sizes.values().sum::<u64>() + size > self.most_bytes {
            let Some(oldest) = state
                .entries
                .iter()
                .map(|it| it.turn)
                .min()
                .filter(|it| *it < state.turn)
            else {
                return Err(io::ErrorKind::QuotaExceeded.into());
            };
            self.forget(state, oldest + 1);
        }
        self.make()?;
        file::write(&self.kept_at(&hash), bytes, file::Access::Private).map_err(io::Error::other)?;
        state.sizes.insert(hash.clone(), size);
        Ok(hash)
    }

    /// Makes the folder, once.
    fn make(&self) -> io::Result<()> {
        if self.is_made.get().is_none() {
            file::private_folder(&self.folder.join("kept")).map_err(io::Error::other)?;
            if let Some(folder) = self.folder.parent() {
                prune(folder, &self.folder);
            }
            self.is_made.set(()).ok();
        }
        Ok(())
    }

    /// Drops what was kept before the message `turn`.
    fn forget(&self, state: &mut State, turn: u64) {
        self.list(&Line::Forgot { before: turn });
        state.forget(turn);
        let used: BTreeSet<_> = state
            .entries
            .iter()
            .filter_map(|it| match &it.before {
                Before::File { hash, .. } => Some(hash.as_str()),
                Before::Nothing | Before::Lost => None,
            })
            .collect();
        state.sizes.retain(|hash, _| {
            let is_used = used.contains(hash.as_str());
            if !is_used {
                fs::remove_file(self.folder.join("kept").join(hash)).ok();
            }
            is_used
        });
    }

    /// Bytes that still are what they were when they were kept.
    fn kept(&self, hash: &str) -> Option<Vec<u8>> {
        let bytes = file::read(&self.kept_at(hash), self.most_bytes).ok()?;
        (hashed(&bytes) == hash).then_some(bytes)
    }

    fn kept_at(&self, hash: &str) -> PathBuf {
        // The list is ours, but a name from a file is never trusted to be a name.
        let name: String = hash.chars().filter(char::is_ascii_hexdigit).collect();
        self.folder.join("kept").join(name)
    }

    fn list(&self, line: &Line) {
        let written = serde_json::to_vec(line)
            .map_err(io::Error::other)
            .and_then(|mut bytes| {
                bytes.push(b'\n');
                self.make()?;
                file::append(&self.folder.join("list"))
                    .map_err(io::Error::other)?
                    .write_all(&bytes)
            });
        if let Err(error) = written {
            tracing::warn!(%error, "the list of checkpoints cannot be written");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn load(&mut self, bytes: &[u8]) {
        // A line that was cut by a crash is no line.
        for line in bytes
            .split(|it| *it == b'\n')
            .filter_map(|it| serde_json::from_slice(it).ok())
        {
            match line {
                Line::Before { turn, path, hash, mode } => {
                    self.turn = self.turn.max(turn);
                    let before = match hash {
                        None => Before::Nothing,
                        Some(hash) if hash.is_empty() => Before::Lost,
                        Some(hash) => Before::File { hash, mode },
                    };
                    self.entries.push(Entry {
                        turn,
                        path,
                        before,
                        after: None,
                    });
                }
                Line::After { turn, path, hash } => {
                    let entry = self
                        .entries
                        .iter_mut()
                        .rev()
                        .find(|it| it.turn == turn && it.path == path);
                    if let Some(entry) = entry {
                        entry.after = hash;
                    }
                }
                Line::Forgot { before } => self.forget(before),
            }
        }
    }

    fn forget(&mut self, turn: u64) {
        self.first = self.first.max(turn);
        self.entries.retain(|it| it.turn >= turn);
    }
}

fn hashed(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

/// The name of a conversation may come from anywhere, and is the name of a folder only where it can be.
fn folder_name(name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        hashed(name.as_bytes())
    }
}

/// Removes the conversations that were used longest ago, but not `own`.
fn prune(folder: &Path, own: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut others: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .map(|it| it.path())
        .filter(|it| it != own && it.join("kept").is_dir())
        .map(|it| {
            let used = fs::metadata(it.join("list")).and_then(|it| it.modified());
            (used.unwrap_or(SystemTime::UNIX_EPOCH), it)
        })
        .collect();
    others.sort();
    let spare = (others.len() + 1).saturating_sub(MOST_CONVERSATIONS);
    for (_, path) in others.into_iter().take(spare) {
        fs::remove_dir_all(path).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::Ground, *};
    use pretty_assertions::assert_eq;
    use std::os::unix::fs::PermissionsExt;

    struct Bench {
        ground: Ground,
        workspace: Workspace,
        seen: Seen,
    }

    impl Bench {
        fn new() -> Self {
            let ground = Ground::new();
            Self {
                workspace: ground.workspace(),
                seen: Seen::keeping(Checkpoints::open(&ground.path("state"), "talk").unwrap()),
                ground,
            }
        }

        fn store(&self) -> &Checkpoints {
            self.seen.checkpoints().unwrap()
        }

        /// Makes a file what it shall be, as a tool would.
        fn set(&self, name: &str, new: Option<&str>) {
            let file = self.workspace.locate(name).unwrap();
            let old = self.workspace.read(&file, 1000).ok().map(Arc::from);
            let change = Change {
                file,
                operation: if new.is_none() {
                    Operation::Delete
                } else {
                    Operation::Edit
                },
                to: None,
                old,
                new: new.map(|it| Arc::from(it.as_bytes())),
                hunks: Vec::new(),
            };
            self.workspace.commit(&self.seen, &[change]).unwrap();
        }

        fn undo(&self, turn: u64) -> Restoration {
            let found = self.store().restoration(&self.workspace, turn).unwrap();
            self.store().restore(&self.workspace, &self.seen, &found).unwrap();
            found
        }

        fn text(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.ground.path("shop").join(name)).ok()
        }
    }

    #[test]
    fn each_message_can_be_taken_back() {
        let bench = Bench::new();
        bench.ground.put("shop/a", "0");
        bench.ground.put("shop/b", "0");
        fs::set_permissions(bench.ground.path("shop/b"), fs::Permissions::from_mode(0o755)).unwrap();
        bench.seen.begin();
        bench.set("a", Some("1"));
        bench.set("a", Some("2"));
        bench.set("new/file", Some("x"));
        bench.seen.begin();
        bench.set("a", Some("3"));
        bench.set("b", None);
        bench.seen.begin();
        bench.set("a", Some("4"));
        let turns: Vec<_> = bench
            .store()
            .turns()
            .into_iter()
            .map(|(turn, files)| (turn, files.len()))
            .collect();
        assert_eq!(turns, [(1, 2), (2, 2), (3, 1)]);

        bench.seen.begin();
        let found = bench.undo(2);
        assert_eq!((found.changes.len(), found.foreign.len(), found.lost.len()), (2, 0, 0));
        assert_eq!(
            (bench.text("a").as_deref(), bench.text("b").as_deref()),
            (Some("2"), Some("0"))
        );
        let mode = fs::metadata(bench.ground.path("shop/b")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        // The undoing is undone.
        bench.seen.begin();
        bench.undo(4);
        assert_eq!((bench.text("a").as_deref(), bench.text("b")), (Some("4"), None));
        bench.seen.begin();
        bench.undo(1);
        assert_eq!(
            (
                bench.text("a").as_deref(),
                bench.text("b").as_deref(),
                bench.text("new/file")
            ),
            (Some("0"), Some("0"), None)
        );
        assert!(bench.undo(1).changes.is_empty());
    }

    #[test]
    fn what_others_changed_since_is_said() {
        let bench = Bench::new();
        bench.ground.put("shop/a", "0");
        bench.ground.put("shop/b", "0");
        bench.seen.begin();
        bench.set("a", Some("1"));
        bench.set("b", Some("1"));
        bench.ground.put("shop/a", "mine");
        fs::remove_file(bench.ground.path("shop/b")).unwrap();
        let found = bench.store().restoration(&bench.workspace, 1).unwrap();
        let foreign: Vec<_> = found.foreign.iter().map(|it| it.shown.as_str()).collect();
        assert_eq!(foreign, ["a", "b"]);
    }

    #[test]
    fn the_store_outlives_the_program_and_a_line_cut_by_a_crash() {
        let bench = Bench::new();
        bench.ground.put("shop/a", "0");
        bench.seen.begin();
        bench.set("a", Some("1"));
        bench.seen.begin();
        bench.set("a", Some("2"));
        let list = bench.ground.path("state/talk/list");
        let mut bytes = fs::read(&list).unwrap();
        bytes.extend_from_slice(b"{\"before\":{\"turn\":3,\"pa");
        fs::write(&list, bytes).unwrap();
        let again = Checkpoints::open(&bench.ground.path("state"), "talk").unwrap();
        assert_eq!(again.begin(), 3);
        let found = again.restoration(&bench.workspace, 1).unwrap();
        assert_eq!(found.changes[0].new.as_deref(), Some("0".as_bytes()));
        assert_eq!(found.foreign, []);
        let mode = fs::metadata(bench.ground.path("state/talk/kept"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        // What was kept and is something else now is worse than nothing.
        for entry in fs::read_dir(bench.ground.path("state/talk/kept")).unwrap() {
            fs::write(entry.unwrap().path(), "rot").unwrap();
        }
        let found = again.restoration(&bench.workspace, 1).unwrap();
        assert_eq!((found.changes.len(), found.lost.len()), (0, 1));
    }

    #[test]
    fn the_store_is_bounded_and_says_what_it_lost() {
        let bench = Bench::new();
        let mut store = Checkpoints::open(&bench.ground.path("state"), "small").unwrap();
        store.most_bytes = 100;
        let bench = Bench {
            seen: Seen::keeping(store),
            ..bench
        };
        let text = |letter: &str| letter.repeat(60);
        bench.ground.put("shop/a", text("a"));
        bench.ground.put("shop/b", text("b"));
        bench.ground.put("shop/c", "c".repeat(101));
        bench.seen.begin();
        bench.set("a", Some("1"));
        bench.seen.begin();
        bench.set("b", Some("1"));
        bench.set("c", Some("1"));
        assert!(!bench.store().restoration(&bench.workspace, 2).unwrap().is_partial);
        let found = bench.store().restoration(&bench.workspace, 1).unwrap();
        assert!(found.is_partial, "of the first message nothing is left");
        let files: Vec<_> = found.changes.iter().map(|it| it.file.shown.as_str()).collect();
        assert_eq!((files, found.lost), (vec!["b"], vec![bench.ground.path("shop/c")]));
        let kept = fs::read_dir(bench.ground.path("state/small/kept")).unwrap().count();
        assert_eq!(kept, 1);
    }

    #[test]
    fn a_name_from_outside_stays_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        for name in ["../../escaped", "/etc/x", "", ".", "..", "a\0b", &"n".repeat(300)] {
            let store = Checkpoints::open(&state, name).unwrap();
            assert!(
                !store.folder.exists(),
                "nothing is made before there is something to keep"
            );
            store.take(Path::new("/x"), None);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let names = fs::read_dir(&state).unwrap().map(|it| it.unwrap().file_name());
        assert!(names.into_iter().all(|it| it.len() == 64));
    }

    #[test]
    fn old_conversations_go() {
        let folder = tempfile::tempdir().unwrap();
        for at in 0..MOST_CONVERSATIONS + 3 {
            Checkpoints::open(folder.path(), &format!("talk-{at}"))
                .unwrap()
                .list(&Line::Forgot { before: 0 });
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MOST_CONVERSATIONS);
    }
}
