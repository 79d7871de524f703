//! The list of protected files before a command, on the disk while the command runs. A program that is killed cannot look
//! what its command has left behind; the next one that opens the workspace does.
//!
//! ```text
//! aside/running-<id>.list   what there was, removed with the command
//! aside/running-<id>.lock   held by the program that runs it; gone with it
//! aside/running-<id>.end    made by the sentinel of a program that was killed, once it has ended all of the command
//! ```
//!
//! What changed after that end is the user's, and is only named.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    io::Write as _,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    created::{Before, Left, List, is_repository},
    is_state_of_git,
    quarantine::{FileIdentity, Quarantine},
    write_guard::{TooMuch, Watch, Watched, walk},
};
use crate::{
    os::file::{self, Lock, Locked},
    sandbox::policy::Ground,
};

/// Bytes of the longest list. Of more than that nothing is compared.
const LONGEST_LIST: usize = 16 << 20;
const PREFIX: &str = "running-";
/// Last part of a list: one without it is torn.
const END: &[u8] = b"end \0";

/// The list of one running command.
#[derive(Debug)]
pub struct Record {
    list: PathBuf,
    _lock: Lock,
}

/// Findings after commands that ran when their programs were killed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LeftBehind {
    pub aside: Vec<LeftFile>,
    /// Findings about which nothing was done.
    pub notes: Vec<LeftNote>,
}

/// A protected file that was new or changed after the program was killed, and that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftFile {
    /// Relative to the workspace, for people.
    pub shown: String,
    /// Its present place, in the folder of what is put aside.
    pub aside: PathBuf,
    /// It was there before the command, with other content.
    pub is_changed: bool,
    root: PathBuf,
    inner: PathBuf,
}

/// A finding about which nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftNote {
    /// Nothing can be compared.
    TooLarge,
    /// Not all could be looked at.
    Cut,
    /// It is not known what was there before a command.
    Unreadable,
    /// It was there before the command, and is gone.
    Gone { path: String },
    /// It could not be put aside.
    Stuck { path: String, why: String },
    /// A repository in a folder that was not there.
    Repository { path: String },
    /// It is new or changed only since the command has ended.
    Later { path: String },
    /// It may have been there before the command, where nobody could look.
    Unsure { path: String },
    /// It is new in a folder that git ignores or that holds packages: builds and installations make those.
    Packaged { path: String },
}

impl LeftBehind {
    pub fn is_empty(&self) -> bool {
        self.aside.is_empty() && self.notes.is_empty()
    }
}

impl Record {
    /// Writes the list for a command whose processes bear `mark`. `None` where there is no place for it; the command runs all the
    /// same. Where it cannot be written whole, it is known by that.
    pub fn write(aside: &Quarantine, before: &Before, watch: Option<&Watch>, mark: &str) -> Option<Self> {
        let folder = aside.folder()?;
        let name = uuid::Uuid::new_v4().simple().to_string();
        let list = folder.join(format!("{PREFIX}{name}.list"));
        let made = (|| -> io::Result<Option<(Self, fs::File)>> {
            file::private_folder(folder).map_err(io::Error::other)?;
            let Locked::Ours(lock) = file::lock(&list.with_extension("lock")).map_err(io::Error::other)? else {
                return Ok(None);
            };
            // What is not written in the end goes with it.
            let record = Self { list, _lock: lock };
            let file = file::append(&record.list).map_err(io::Error::other)?;
            Ok(Some((record, file)))
        })();
        let fails = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "after a crash nobody would know what this command made");
        };
        match made {
            // Not brought to the disk: after a power failure no command is running.
            Ok(made) => made.map(|(record, mut file)| {
                if let Err(error) = file.write_all(&text(before, watch, mark)) {
                    fails(&error);
                }
                record
            }),
            Err(error) => {
                fails(&error);
                None
            }
        }
    }

    /// The part of its name by which the sentinel knows it.
    pub fn id(&self) -> &str {
        let name = self.list.file_stem().and_then(OsStr::to_str);
        name.and_then(|it| it.strip_prefix(PREFIX)).unwrap_or_default()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        remove(&self.list);
    }
}

fn remove(list: &Path) {
    for kind in ["list", "end", "lock"] {
        fs::remove_file(list.with_extension(kind)).ok();
    }
}

/// Looks for commands that ran when their program was killed, in the folders of `ground`; puts aside what is new or changed among
/// the protected files there. `end` ends the processes that bear a mark. Once nobody wants to know (`is_wanted`) nothing more is
/// moved, and the next program looks.
pub fn left_behind(
    aside: &Quarantine,
    ground: &Ground,
    is_wanted: impl Fn() -> bool,
    end: impl Fn(&str),
) -> LeftBehind {
    let mut left = LeftBehind::default();
    for list in lists(aside) {
        // Its program lives.
        let Ok(Locked::Ours(_lock)) = file::lock(&list.with_extension("lock")) else {
            continue;
        };
        // It ended in the meantime.
        if !list.exists() {
            continue;
        }
        let span = Span::of(&list);
        let bytes = file::read_unlinked(&list, LONGEST_LIST as u64).unwrap_or_default();
        if first_root(&bytes).is_some_and(|it| it != ground.root) {
            continue;
        }
        match Listed::read(&bytes) {
            Some(listed) => {
                end(&listed.mark);
                let ground = Ground {
                    more: listed.more(),
                    ..ground.clone()
                };
                if !listed.compare(aside, &ground, &span, &is_wanted, &mut left) {
                    break;
                }
            }
            None => left.notes.push(LeftNote::Unreadable),
        }
        remove(&list);
    }
    left.notes.sort();
    left.notes.dedup();
    left
}

/// Returns true if there are lists, of commands that run or that were cut.
pub fn has_lists(aside: &Quarantine) -> bool {
    !lists(aside).is_empty()
}

/// The lists of all commands that run, or ran when their programs were killed. Notes of ends without a list go.
fn lists(aside: &Quarantine) -> Vec<PathBuf> {
    let entries = aside.folder().and_then(|it| fs::read_dir(it).ok());
    let files = entries.into_iter().flatten().flatten().map(|it| it.path());
    let ours = files.filter(|it| {
        let name = it.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(PREFIX)
    });
    let (lists, others): (Vec<_>, Vec<_>) = ours.partition(|it| it.extension().is_some_and(|it| it == "list"));
    let ends = others.iter().filter(|it| it.extension().is_some_and(|it| it == "end"));
    for end in ends.filter(|it| !lists.contains(&it.with_extension("list"))) {
        fs::remove_file(end).ok();
    }
    lists
}

/// The time in which a command ran.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// Nothing of the command is older.
    start: SystemTime,
    /// Nothing of the command is newer. `None`: nobody knows.
    end: Option<SystemTime>,
}

impl Span {
    fn of(list: &Path) -> Self {
        let modified = |path: &Path| fs::symlink_metadata(path).and_then(|it| it.modified()).ok();
        let start = modified(list).unwrap_or(UNIX_EPOCH);
        // No command outlives its machine.
        let stopped = || booted().filter(|it| *it > start);
        Self {
            start,
            end: modified(&list.with_extension("end")).or_else(stopped),
        }
    }

    /// Returns true if a file that was there was changed after the command had ended.
    fn is_changed_later(&self, path: &Path) -> bool {
        let about = fs::symlink_metadata(path);
        about.is_ok_and(|it| self.end.is_some_and(|end| changed(&it) > end))
    }

    /// Returns true if what was not there has come after the command had ended.
    fn is_made_later(&self, path: &Path) -> bool {
        let (Some(end), Ok(about)) = (self.end, fs::symlink_metadata(path)) else {
            return false;
        };
        match (about.is_dir(), about.created().ok()) {
            // What is put into a folder changes it.
            (true, Some(born)) => born > end,
            (true, None) => !has_changed(path, |it| it <= end),
            (false, born) => changed(&about) > end && !born.is_some_and(|it| it >= self.start && it <= end),
        }
    }

    /// Returns true if nothing at a path, nor a folder on the way to it, has changed since the command began.
    fn is_older(&self, path: &Path, root: &Path) -> bool {
        let way = path
            .ancestors()
            .skip(1)
            .take_while(|it| it.starts_with(root) && *it != root);
        let is_old = |it: &Path| fs::symlink_metadata(it).is_ok_and(|it| changed(&it) < self.start);
        way.into_iter().all(is_old) && !has_changed(path, |it| it >= self.start)
    }

    /// Returns true if a repository came with the folder that it is in, or from somewhere else.
    fn is_of_new_folder(&self, git: &Path) -> bool {
        let born = |path: &Path| fs::symlink_metadata(path).and_then(|it| it.created()).ok();
        let folder = git.parent().and_then(born);
        folder.is_none_or(|it| it >= self.start) || born(git).is_some_and(|it| it < self.start)
    }
}

/// Time at which this machine was started, to the second. `None`: it is not known.
#[cfg(target_os = "linux")]
fn booted() -> Option<SystemTime> {
    let about = fs::read_to_string("/proc/stat").ok()?;
    let seconds = about.lines().find_map(|it| it.strip_prefix("btime "))?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds.trim().parse().ok()?))
}

/// Not asked for elsewhere: a command whose end was not recorded may then have changed anything since it began.
#[cfg(not(target_os = "linux"))]
const fn booted() -> Option<SystemTime> {
    None
}

/// Time of the last change of anything that the system says of a file; no program can set it.
fn changed(about: &fs::Metadata) -> SystemTime {
    let (seconds, nanoseconds) = (about.ctime(), about.ctime_nsec());
    let since = Duration::new(
        seconds.try_into().unwrap_or_default(),
        nanoseconds.try_into().unwrap_or_default(),
    );
    UNIX_EPOCH + since
}

/// Returns true if the time of a path, or of anything below, is one of these; also where there is too much to look at.
fn has_changed(path: &Path, is_meant: impl Fn(SystemTime) -> bool) -> bool {
    let looked = walk(path, &mut |_, about| {
        if is_meant(changed(about)) { Err(TooMuch) } else { Ok(()) }
    });
    looked.is_err()
}

/// A list as it was read.
#[derive(Debug, Default, PartialEq)]
struct Listed {
    /// The workspace first.
    roots: Vec<PathBuf>,
    /// Borne by the command's processes.
    mark: String,
    before: List,
    /// Paths with all below that the command could change.
    watched: Vec<PathBuf>,
    /// What there was, as it was.
    entries: Vec<(PathBuf, Option<FileIdentity>)>,
    /// It would have been too long.
    is_long: bool,
}

/// Writes parts that end in a zero byte: no path contains one.
fn text(before: &Before, watch: Option<&Watch>, mark: &str) -> Vec<u8> {
    let mut text = Text::default();
    for root in before.ground().roots() {
        text.put("root", root);
    }
    text.put("mark", mark);
    let head = text.0.len();
    let List {
        names,
        missing,
        opened,
        fixed,
        closed,
        git_write,
        is_partial,
    } = before.list();
    for (word, is_so) in [("git", git_write), ("partial", is_partial)] {
        if is_so {
            text.put(word, "");
        }
    }
    for (word, paths) in [
        ("name", names),
        ("missing", missing),
        ("opened", opened),
        ("fixed", fixed),
        ("closed", closed),
    ] {
        for path in paths {
            text.put(word, path);
        }
    }
    for path in watch.into_iter().flat_map(Watch::paths) {
        text.put("watch", path);
    }
    for (path, entry) in watch.into_iter().flat_map(Watch::entries) {
        match entry {
            Watched::File(identity) => text.put(&format!("file {}", identity.line().trim_end()), path),
            Watched::Other => text.put("other", path),
        }
    }
    if text.0.len() > LONGEST_LIST - END.len() {
        text.0.truncate(head);
        text.put("long", "");
    }
    text.0.extend_from_slice(END);
    text.0
}

#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    fn put(&mut self, kind: &str, path: impl AsRef<OsStr>) {
        self.0.extend_from_slice(kind.as_bytes());
        self.0.push(b' ');
        self.0.extend_from_slice(path.as_ref().as_bytes());
        self.0.push(0);
    }
}

/// The workspace of a list, also of one that is torn behind it.
fn first_root(bytes: &[u8]) -> Option<&Path> {
    let end = bytes.iter().position(|it| *it == 0)?;
    let path = bytes.get(..end)?.strip_prefix(b"root ")?;
    Some(Path::new(OsStr::from_bytes(path)))
}

impl Listed {
    /// `None` for one that is torn, or that says something strange.
    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_suffix(END)?;
        let mut listed = Self::default();
        for part in bytes.split(|it| *it == 0).filter(|it| !it.is_empty()) {
            let mut words = part.splitn(2, |it| *it == b' ');
            let (kind, rest) = (words.next()?, words.next()?);
            let path = PathBuf::from(OsStr::from_bytes(rest));
            let before = &mut listed.before;
            match kind {
                b"root" => listed.roots.push(path),
                b"mark" => listed.mark = String::from_utf8(rest.to_vec()).ok()?,
                b"git" => before.git_write = true,
                b"partial" => before.is_partial = true,
                b"long" => listed.is_long = true,
                b"name" => before.names.extend([path]),
                b"missing" => before.missing.extend([path]),
                b"opened" => before.opened.extend([path]),
                b"fixed" => before.fixed.extend([path]),
                b"closed" => before.closed.extend([path]),
                b"watch" => listed.watched.push(path),
                b"other" => listed.entries.push((path, None)),
                b"file" => {
                    let mut words = rest.splitn(5, |it| *it == b' ');
                    let mut number = || std::str::from_utf8(words.next()?).ok();
                    let identity = FileIdentity {
                        device: number()?.parse().ok()?,
                        inode: number()?.parse().ok()?,
                        changed: (number()?.parse().ok()?, number()?.parse().ok()?),
                    };
                    let path = PathBuf::from(OsStr::from_bytes(words.next()?));
                    listed.entries.push((path, Some(identity)));
                }
                _ => return None,
            }
        }
        (!listed.roots.is_empty()).then_some(listed)
    }

    /// The folders beside the workspace that are still there.
    fn more(&self) -> Vec<PathBuf> {
        let more = self.roots.iter().skip(1);
        more.filter(|it| it.is_dir()).cloned().collect()
    }

    /// Returns false if nobody wanted to know before anything was moved.
    fn compare(
        self,
        aside: &Quarantine,
        ground: &Ground,
        span: &Span,
        is_wanted: &impl Fn() -> bool,
        left: &mut LeftBehind,
    ) -> bool {
        if self.is_long {
            left.notes.push(LeftNote::TooLarge);
            return true;
        }
        let Self {
            before,
            watched,
            entries,
            ..
        } = self;
        let before = Before::listed(ground, before);
        // May take seconds.
        let (found, is_whole) = before.left(aside);
        if !is_wanted() {
            return false;
        }
        // Who made a change meanwhile cannot be told; what git has recorded since is the user's.
        let is_users = |path: &Path| aside.is_known(path) || before.is_of_git(path);
        let is_meant = |path: &Path| !is_state_of_git(path) && !is_users(path);
        let known: BTreeSet<&Path> = entries.iter().map(|it| it.0.as_path()).collect();
        let mut take = |path: &Path, is_changed: bool| {
            let Some((root, inner)) = before.place(path) else {
                return;
            };
            let shown = before.shown(path);
            match aside.put(root, inner) {
                Ok(there) => left.aside.push(LeftFile {
                    shown,
                    aside: there,
                    is_changed,
                    root: root.to_owned(),
                    inner: inner.to_owned(),
                }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => left.notes.push(LeftNote::Stuck {
                    path: shown,
                    why: error.to_string(),
                }),
            }
        };
        let mut notes = Vec::new();
        let (mut gone, mut new): (Option<&Path>, BTreeSet<PathBuf>) = (None, BTreeSet::new());
        for (path, identity) in entries.iter().filter(|it| is_meant(&it.0)) {
            let shown = || before.shown(path);
            match (FileIdentity::of(path), identity) {
                (None, _) if gone.is_some_and(|it| path.starts_with(it)) => {}
                (None, _) => {
                    gone = Some(path);
                    notes.push(LeftNote::Gone { path: shown() });
                }
                (Some(now), Some(was)) if now != *was && span.is_changed_later(path) => {
                    notes.push(LeftNote::Later { path: shown() });
                }
                (Some(now), Some(was)) if now != *was => take(path, true),
                (Some(_), _) => {}
            }
        }
        for path in &watched {
            // Whoever makes more than can be looked at has made enough to be told of.
            let _ = walk(path, &mut |path, _| {
                if !known.contains(path) && is_meant(path) {
                    new.insert(path.to_owned());
                }
                Ok::<(), TooMuch>(())
            });
        }
        if !is_whole {
            notes.push(LeftNote::Cut);
        }
        for Left {
            path,
            is_new,
            is_packaged,
        } in found
        {
            let shown = before.shown(&path);
            let root = before.place(&path).map_or(Path::new("/"), |it| it.0);
            if !is_new {
                if !span.is_older(&path, root) {
                    notes.push(LeftNote::Unsure { path: shown });
                }
            } else if !is_packaged {
                new.insert(path);
            } else if !span.is_made_later(&path) {
                notes.push(LeftNote::Packaged { path: shown });
            }
        }
        let mut above: Option<PathBuf> = None;
        for path in new {
            if above.as_ref().is_some_and(|it| path.starts_with(it)) {
                continue;
            }
            let folder = || path.parent().map_or_else(|| before.shown(&path), |it| before.shown(it));
            if span.is_made_later(&path) {
                notes.push(LeftNote::Later {
                    path: before.shown(&path),
                });
            } else if is_repository(&path) && span.is_of_new_folder(&path) {
                notes.push(LeftNote::Repository { path: folder() });
            } else {
                take(&path, false);
            }
            above = Some(path);
        }
        left.notes.extend(notes);
        true
    }
}

impl Quarantine {
    /// Moves a file back to where it was, because the user wants it. Fails if something is there by now.
    pub fn give_back(&self, left: &LeftFile) -> io::Result<()> {
        Self::take_back(&left.aside, &left.root, &left.inner)?;
        self.vouch(&left.root.join(&left.inner));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
