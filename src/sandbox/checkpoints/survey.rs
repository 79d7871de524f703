//! A survey of the workspace, which finds what a command has changed.
//!
//! The first look reads every file that searches see (what git ignores is build output) into a scratch file that goes with the
//! program. From then on a look asks the system about each file and each folder, and reads only what is not as it was. A name
//! that came or went has changed its folder, so only changed folders are listed again.
//!
//! It is bounded in files, in bytes of one and of all, and in time where somebody waits: what is beyond is seen, and cannot be
//! brought back.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::FileExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::path_state::{PathContent, PathState, contents, target};
use crate::{
    os::file,
    sandbox::{
        protect::{PLACE_SIGN, is_place},
        walk::Bounds,
        workspace::Workspace,
    },
};

/// Maximum number of files that are surveyed.
const MOST_FILES: usize = 100_000;
/// Maximum size of a stored file, in bytes.
const FILE_BYTES: u64 = 2 << 20;
/// Maximum bytes that are stored of all files …
const ALL_BYTES: u64 = 256 << 20;
/// … and of what they became; then the first look is made anew.
const SCRATCH_BYTES: u64 = 384 << 20;
/// The first look goes on for so long once somebody waits for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum time of a walk.
const LONGEST_WALK: Duration = Duration::from_mins(5);
/// A file that was changed so shortly before it was read may be changed again without its times showing it: clocks of
/// file systems tick slowly.
const TICK_NANOS: i128 = 20_000_000;
/// Number of changed folders above which the whole workspace is walked again.
const MOST_FOLDERS_LISTED: usize = 200;
/// Number of files from which two threads are used.
const WORTH_TWO: usize = 2000;

/// Number of callers that wait for a first survey.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Announces a caller that waits for the first survey, which then stops at [`PATIENCE`].
pub fn hurry() {
    WAITING.fetch_add(1, Ordering::Relaxed);
}

/// Ends what [`hurry`] announced.
pub fn hurried() {
    WAITING.fetch_sub(1, Ordering::Relaxed);
}

/// The workspace as it was looked at last.
#[derive(Debug)]
pub struct Survey {
    folders: BTreeMap<PathBuf, Folder>,
    scratch: Option<Scratch>,
    files: usize,
    /// Start of the last look, in nanoseconds since the Unix epoch.
    looked: i128,
}

#[derive(Clone, Debug)]
struct Folder {
    about: FileMetadata,
    /// Start of the look in which it was last listed, in nanoseconds since the Unix epoch.
    listed: i128,
    /// Files and links in it.
    files: BTreeMap<OsString, KnownFile>,
}

#[derive(Clone, Debug)]
struct KnownFile {
    about: FileMetadata,
    seen: Seen,
    /// Time of reading, in nanoseconds since the Unix epoch.
    read: i128,
}

/// State of a path, with bytes in the scratch file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Nothing,
    /// Its bytes.
    File {
        piece: ScratchRange,
        mode: u32,
    },
    /// A file whose bytes are not kept: it is too large, or there is no room. That it is another one is known all the same.
    Unkept {
        size: i64,
        modified: i128,
        mode: u32,
    },
    Link(PathBuf),
    Folder {
        mode: u32,
    },
    Other,
}

/// A part of the scratch file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchRange {
    at: u64,
    bytes: u64,
}

/// Paths at which something else stands than before: what stood there, and what does.
pub type Differences = BTreeMap<PathBuf, (Seen, Seen)>;

/// Metadata of a file, which change with every write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileMetadata {
    device: u64,
    inode: u64,
    size: i64,
    modified: i128,
    changed: i128,
    mode: u32,
}

impl FileMetadata {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_lossless,
        reason = "the types differ from system to system"
    )]
    fn of(it: &Stat) -> Self {
        Self {
            device: it.st_dev as u64,
            inode: it.st_ino as u64,
            size: it.st_size as i64,
            modified: it.st_mtime as i128 * 1_000_000_000 + it.st_mtime_nsec as i128,
            changed: it.st_ctime as i128 * 1_000_000_000 + it.st_ctime_nsec as i128,
            mode: it.st_mode as u32,
        }
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode as _)
    }
}

/// A difference found by comparing a known path with the disk.
enum Difference {
    Folder(PathBuf, FileMetadata),
    FolderGone(PathBuf),
    File(PathBuf, OsString, FileMetadata),
    FileGone(PathBuf, OsString),
}

impl Survey {
    /// Looks for the first time. The scratch file is made in `folder`, and has no name.
    pub fn of(workspace: &Workspace, folder: &Path) -> Self {
        let scratch = Scratch::make(folder);
        if let Err(error) = &scratch {
            tracing::warn!(%error, "changes by commands cannot be saved for undo");
        }
        let mut survey = Self {
            folders: BTreeMap::new(),
            scratch: scratch.ok(),
            files: 0,
            looked: now(),
        };
        let mut limit = Limit::default();
        for root in roots(workspace) {
            survey.walk(workspace, &root, &mut limit, &mut Differences::new());
        }
        if let Some(scratch) = &mut survey.scratch {
            scratch.most = SCRATCH_BYTES;
        }
        survey
    }

    /// Returns true if the scratch file has grown too large and a new survey is needed.
    pub fn is_worn(&self) -> bool {
        self.scratch
            .as_ref()
            .is_some_and(|it| it.length + FILE_BYTES > SCRATCH_BYTES)
    }

    /// Looks again; gives what is not as it was, in order of the paths.
    pub fn refresh(&mut self, workspace: &Workspace) -> Differences {
        let before = self.looked;
        self.looked = now();
        let news = self.news();
        let mut differences = Differences::new();
        let mut listed: BTreeSet<PathBuf> = BTreeSet::new();
        let mut rules_changed = false;
        for it in news {
            match it {
                Difference::File(folder, name, about) if about.kind() != FileType::Directory => {
                    rules_changed |= is_rules(&name);
                    self.look_at(&folder, &name, about, &mut differences);
                }
                Difference::File(folder, name, _) | Difference::FileGone(folder, name) => {
                    rules_changed |= is_rules(&name);
                    if let Some(known) = self.folders.get_mut(&folder).and_then(|it| it.files.remove(&name)) {
                        self.files -= 1;
                        note(&mut differences, folder.join(name), known.seen, Seen::Nothing);
                    }
                }
                Difference::FolderGone(path) => {
                    if let Some(folder) = self.folders.remove(&path) {
                        let mode = folder.about.mode & 0o7777;
                        note(&mut differences, path.clone(), Seen::Folder { mode }, Seen::Nothing);
                        for (name, known) in folder.files {
                            self.files -= 1;
                            note(&mut differences, path.join(name), known.seen, Seen::Nothing);
                        }
                    }
                }
                Difference::Folder(path, about) => {
                    if let Some(folder) = self.folders.get_mut(&path) {
                        let (was, is) = (folder.about.mode & 0o7777, about.mode & 0o7777);
                        folder.about = about;
                        folder.listed = self.looked;
                        if was != is {
                            let (was, is) = (Seen::Folder { mode: was }, Seen::Folder { mode: is });
                            note(&mut differences, path.clone(), was, is);
                        }
                        listed.insert(path);
                    }
                }
            }
        }
        let mut limit = Limit::default();
        if rules_changed || listed.len() > MOST_FOLDERS_LISTED {
            for root in roots(workspace) {
                self.walk(workspace, &root, &mut limit, &mut differences);
            }
        } else {
            for path in listed {
                self.list(workspace, &path, &mut limit, &mut differences);
            }
        }
        // What an ignore file hid before, or hides now, was not made or removed.
        if rules_changed {
            let is_news = |path: &Path| self.about(path).is_none_or(|it| it.changed + TICK_NANOS >= before);
            let new: BTreeSet<PathBuf> = differences.keys().filter(|it| is_news(it)).cloned().collect();
            differences.retain(|path, (was, is)| match (was, is) {
                // What a moved folder holds is as old as it was.
                (Seen::Nothing, _) => path.ancestors().any(|it| new.contains(it)),
                (_, Seen::Nothing) => std::fs::symlink_metadata(path).is_err(),
                _ => true,
            });
        }
        differences.retain(|_, (was, is)| was != is);
        differences
    }

    /// Returns a state in the form that checkpoints store.
    pub fn found(&self, seen: &Seen) -> PathContent {
        let bare = |stand| PathContent { stand, bytes: None };
        match seen {
            Seen::Nothing => PathContent::NOTHING,
            Seen::File { piece, mode } => {
                let bytes = self.scratch.as_ref().and_then(|it| it.get(*piece));
                bytes.map_or(bare(PathState::Other), |it| PathContent::file(it, *mode))
            }
            Seen::Link(target) => bare(PathState::Link { target: target.clone() }),
            Seen::Folder { mode } => bare(PathState::Folder { mode: *mode }),
            Seen::Unkept { .. } | Seen::Other => bare(PathState::Other),
        }
    }

    fn about(&self, path: &Path) -> Option<FileMetadata> {
        if let Some(folder) = self.folders.get(path) {
            return Some(folder.about);
        }
        let folder = self.folders.get(path.parent()?)?;
        Some(folder.files.get(path.file_name()?)?.about)
    }

    /// Asks the system about all that is known.
    fn news(&self) -> Vec<Difference> {
        let mut news = self.compared();
        let gone = |it: &Difference| match it {
            Difference::FolderGone(path) => Some(path.clone()),
            Difference::Folder(..) | Difference::File(..) | Difference::FileGone(..) => None,
        };
        let gone: BTreeSet<PathBuf> = news.iter().filter_map(gone).collect();
        if gone.is_empty() {
            return news;
        }
        // Where a link has taken a folder's place, its old names lead to what is behind the link.
        let is_gone = |path: &Path| path.ancestors().any(|it| gone.contains(it));
        news.retain(|it| match it {
            Difference::Folder(path, _)
            | Difference::FolderGone(path)
            | Difference::File(path, ..)
            | Difference::FileGone(path, _) => !is_gone(path),
        });
        let folders = self.folders.keys().filter(|it| is_gone(it));
        news.extend(folders.cloned().map(Difference::FolderGone));
        news
    }

    fn compared(&self) -> Vec<Difference> {
        let folders: Vec<_> = self.folders.iter().collect();
        if self.files < WORTH_TWO {
            return compare(&folders);
        }
        // Halves by files, not by folders.
        let mut count = 0;
        let half = folders
            .iter()
            .position(|it| {
                count += it.1.files.len() + 1;
                count > self.files / 2
            })
            .unwrap_or_default();
        let (one, other) = folders.split_at(half);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| compare(other));
            let mut news = compare(one);
            news.extend(second.join().unwrap_or_default());
            news
        })
    }

    /// A file that is new or not as it was.
    fn look_at(&mut self, folder: &Path, name: &OsStr, about: FileMetadata, differences: &mut Differences) {
        let known = self.folders.get(folder).and_then(|it| it.files.get(name));
        let old = known.map_or(Seen::Nothing, |it| it.seen.clone());
        let seen = match open_folder(folder) {
            Ok(opened) => self.read(&opened, name, &about, Some(&old)),
            Err(_) => Seen::Other,
        };
        let read = self.looked;
        let known = KnownFile {
            about,
            seen: seen.clone(),
            read,
        };
        if let Some(folder) = self.folders.get_mut(folder)
            && folder.files.insert(name.to_owned(), known).is_none()
        {
            self.files += 1;
        }
        if old != seen {
            note(differences, folder.join(name), old, seen);
        }
    }

    /// Reads the state of `name`. Where `old` is still true, its bytes are not stored again.
    fn read(&mut self, folder: &OwnedFd, name: &OsStr, about: &FileMetadata, old: Option<&Seen>) -> Seen {
        match about.kind() {
            FileType::Symlink => target(folder, name).map_or(Seen::Other, Seen::Link),
            FileType::RegularFile => {
                let mode = about.mode & 0o7777;
                let unkept = Seen::Unkept {
                    size: about.size,
                    modified: about.modified,
                    mode,
                };
                let Some(scratch) = &mut self.scratch else {
                    return unkept;
                };
                let Ok(Some(bytes)) = contents(folder, name, FILE_BYTES) else {
                    return unkept;
                };
                if let Some(Seen::File { piece, .. }) = old
                    && piece.bytes == bytes.len() as u64
                    && scratch.get(*piece).as_deref() == Some(&bytes)
                {
                    return Seen::File { piece: *piece, mode };
                }
                scratch.put(&bytes).map_or(unkept, |piece| Seen::File { piece, mode })
            }
            _ => Seen::Other,
        }
    }

    /// Lists a folder that has changed: new files, and new folders with all that is in them.
    fn list(&mut self, workspace: &Workspace, path: &Path, limit: &mut Limit, differences: &mut Differences) {
        let Ok(located) = workspace.located(path) else { return };
        let Ok(walker) = workspace.walker(&located, bounds()) else {
            return;
        };
        let walker = walker.down_to(1);
        let mut folders = Vec::new();
        for entry in walker.entries().flatten().filter(|it| it.depth() > 0) {
            let found = entry.path();
            if entry.file_type().is_some_and(|it| it.is_dir()) {
                if !self.folders.contains_key(found) {
                    folders.push(found.to_owned());
                }
                continue;
            }
            let Some(name) = found.file_name() else { continue };
            let is_known = self.folders.get(path).is_some_and(|it| it.files.contains_key(name));
            if !is_known
                && limit.takes(self.files)
                && let Some(about) = about_at(found)
            {
                self.look_at(path, name, about, differences);
            }
        }
        for folder in folders {
            self.walk(workspace, &folder, limit, differences);
        }
    }

    /// Takes in a folder and all below it that is not known yet.
    fn walk(&mut self, workspace: &Workspace, root: &Path, limit: &mut Limit, differences: &mut Differences) {
        let Ok(located) = workspace.located(root) else { return };
        let Ok(walker) = workspace.walker(&located, bounds()) else {
            return;
        };
        for entry in walker.entries().flatten() {
            let found = entry.path();
            if !limit.takes(self.files) {
                return;
            }
            let Some(about) = about_at(found) else { continue };
            if about.kind() == FileType::Directory {
                // It stands for a name while some command runs.
                if about.mode & PLACE_SIGN != 0 && is_place(found) {
                    continue;
                }
                if !self.folders.contains_key(found) {
                    let mode = about.mode & 0o7777;
                    note(differences, found.to_owned(), Seen::Nothing, Seen::Folder { mode });
                    let folder = Folder {
                        about,
                        listed: self.looked,
                        files: BTreeMap::new(),
                    };
                    self.folders.insert(found.to_owned(), folder);
                }
                continue;
            }
            let (Some(folder), Some(name)) = (found.parent(), found.file_name()) else {
                continue;
            };
            let is_known = self.folders.get(folder).is_some_and(|it| it.files.contains_key(name));
            if !is_known {
                self.look_at(folder, name, about, differences);
            }
        }
    }
}

fn roots(workspace: &Workspace) -> Vec<PathBuf> {
    let added = workspace.added().iter().filter(|it| !it.starts_with(workspace.root()));
    std::iter::once(workspace.root().to_owned())
        .chain(added.cloned())
        .collect()
}

/// Nobody may wait for the first look, which goes on in the background; but not for ever.
fn bounds() -> Bounds {
    Bounds::within(LONGEST_WALK)
}

/// A file that says what is hidden.
fn is_rules(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|it| it.starts_with('.') && it.ends_with("ignore"))
}

fn note(differences: &mut Differences, path: PathBuf, before: Seen, after: Seen) {
    match differences.entry(path) {
        // What went and came is one change.
        Entry::Occupied(mut known) => known.get_mut().1 = after,
        Entry::Vacant(new) => {
            new.insert((before, after));
        }
    }
}

/// Bounds of a walk: number of files, and time if a caller waits.
#[derive(Default)]
struct Limit {
    waited: Option<Instant>,
}

impl Limit {
    fn takes(&mut self, files: usize) -> bool {
        if files >= MOST_FILES {
            return false;
        }
        if WAITING.load(Ordering::Relaxed) == 0 {
            return true;
        }
        self.waited.get_or_insert_with(Instant::now).elapsed() < PATIENCE
    }
}

fn compare(folders: &[(&PathBuf, &Folder)]) -> Vec<Difference> {
    let mut news = Vec::new();
    for (path, folder) in folders {
        let Ok(opened) = name_folder(path) else {
            news.push(Difference::FolderGone((*path).clone()));
            continue;
        };
        let Ok(about) = rustix::fs::fstat(&opened).map(|it| FileMetadata::of(&it)) else {
            continue;
        };
        for (name, known) in &folder.files {
            match rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(it) => {
                    let about = FileMetadata::of(&it);
                    let is_fresh = known.about.changed + TICK_NANOS >= known.read;
                    if about != known.about || is_fresh {
                        news.push(Difference::File((*path).clone(), name.clone(), about));
                    }
                }
                Err(Errno::NOENT) => news.push(Difference::FileGone((*path).clone(), name.clone())),
                Err(_) => {}
            }
        }
        let is_same = about.modified == folder.about.modified
            && about.changed == folder.about.changed
            && about.inode == folder.about.inode;
        // A name may have come in the very tick in which it was listed.
        let is_fresh = folder.about.modified + TICK_NANOS >= folder.listed;
        if !is_same || is_fresh {
            news.push(Difference::Folder((*path).clone(), about));
        }
    }
    news
}

/// Enough for asking about what is in it.
fn name_folder(path: &Path) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn about_at(path: &Path) -> Option<FileMetadata> {
    let about = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileMetadata::of(&about))
}

fn now() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| i128::try_from(it.as_nanos()).unwrap_or_default())
}

/// A file without a name: it goes with the program, however that ends.
#[derive(Debug)]
struct Scratch {
    file: File,
    length: u64,
    most: u64,
    has_failed: bool,
}

impl Scratch {
    fn make(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            file: file::nameless(folder).map_err(io::Error::other)?,
            length: 0,
            most: ALL_BYTES,
            has_failed: false,
        })
    }

    /// `None`: there is no room.
    fn put(&mut self, bytes: &[u8]) -> Option<ScratchRange> {
        let size = bytes.len() as u64;
        if self.has_failed || self.length + size > self.most {
            return None;
        }
        if self.file.write_all_at(bytes, self.length).is_err() {
            // How much of it stands there is not known.
            self.has_failed = true;
            return None;
        }
        let piece = ScratchRange {
            at: self.length,
            bytes: size,
        };
        self.length += size;
        Some(piece)
    }

    fn get(&self, piece: ScratchRange) -> Option<Arc<[u8]>> {
        let mut bytes = vec![0; usize::try_from(piece.bytes).ok()?];
        self.file.read_exact_at(&mut bytes, piece.at).ok()?;
        Some(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::workspace::tests::Ground;

    #[test]
    fn a_survey_is_worn_when_its_file_may_not_hold_another_one() {
        let ground = Ground::new();
        let mut survey = Survey::of(&ground.workspace(), &ground.path("shop"));
        for (length, expected) in [
            (0, false),
            (SCRATCH_BYTES - FILE_BYTES, false),
            (SCRATCH_BYTES - FILE_BYTES + 1, true),
        ] {
            survey.scratch.as_mut().expect("a file").length = length;
            assert_eq!(survey.is_worn(), expected, "{length}");
        }
    }
}
