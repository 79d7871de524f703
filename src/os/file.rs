//! Files that are ours: written whole or not at all, private unless said otherwise, locked while in use.
//!
//! A reader of [`write()`] sees the old file or the new one, never half of either, also after a crash. Nothing here
//! opens a pipe or a device, so nothing here hangs.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// Permissions of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The owner only, whatever the umask says.
    Private,
    /// As the umask allows.
    Shared,
}

/// Error of a file operation. It always names the path.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} is not a regular file", .path.display())]
    NotRegular { path: PathBuf },
    /// The path, or a folder on the way to it.
    #[error("{} is a link that leads nowhere", .link.display())]
    Dangling { link: PathBuf },
    #[error("{0} can be read by others\nrun `chmod 600 {0}`", .path.display())]
    TooOpen { path: PathBuf },
    #[error("{} is larger than {limit_bytes} bytes", .path.display())]
    TooLarge { path: PathBuf, limit_bytes: u64 },
    #[error("{} could not be {done}", .path.display())]
    Io {
        path: PathBuf,
        done: &'static str,
        source: io::Error,
    },
}

impl Error {
    fn io(path: &Path, done: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, done, source }
    }

    /// Returns true if the file, or a folder on the way to it, does not exist. A link that leads nowhere does: what it should
    /// lead to is not known.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::NotRegular { .. } | Self::Dangling { .. } | Self::TooOpen { .. } | Self::TooLarge { .. } => false,
        }
    }
}

/// Returns a path without `.` and `..`, by its text only.
pub fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Gives a file or a folder another place on the same file system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Replaces the file at `path` by one with `bytes`.
///
/// A file that is there keeps its permissions, and a symbolic link keeps pointing: its target is replaced. The new
/// content is on the disk when this returns. Two writers at once leave one of the two contents.
pub fn write(path: &Path, bytes: &[u8], access: Access) -> Result<(), Error> {
    write_by(path, access, &mut |it| it.write_all(bytes))
}

/// The same with what `fill` writes.
pub fn write_by(path: &Path, access: Access, fill: &mut dyn FnMut(&mut File) -> io::Result<()>) -> Result<(), Error> {
    let path = match fs::symlink_metadata(path) {
        Ok(there) if there.is_symlink() => fs::canonicalize(path).map_err(Error::io(path, "followed"))?,
        Ok(_) | Err(_) => path.to_owned(),
    };
    let old = match fs::symlink_metadata(&path) {
        Ok(old) if old.is_file() => Some(old),
        Ok(_) => return Err(Error::NotRegular { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io(&path, "written")(error)),
    };
    let (mut file, mut temporary) = beside(&path, access, old.is_some())?;
    let mut fill = |file: &mut File| {
        fill(file)?;
        if let Some(old) = &old {
            keep(file, old)?;
        }
        file.sync_all()
    };
    fill(&mut file).map_err(Error::io(&path, "written"))?;
    drop(file);
    fs::rename(&temporary.path, &path).map_err(Error::io(&path, "replaced"))?;
    temporary.moved = true;
    // The new name is safe only when the folder is. Some filesystems cannot sync one, and then nothing is lost.
    if let Some(folder) = path.parent() {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        File::open(folder).and_then(|it| it.sync_all()).ok();
    }
    Ok(())
}

/// Replaces the file at `path`, which nobody but its owner can read afterwards, whatever its permissions were. Follows no
/// link: an error.
pub fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => return Err(Error::NotRegular { path: path.to_owned() }),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io(path, "written")(error)),
    }
    let (mut file, mut temporary) = beside(path, Access::Private, false)?;
    let fill = |file: &mut File| {
        file.write_all(bytes)?;
        file.sync_all()
    };
    fill(&mut file).map_err(Error::io(path, "written"))?;
    make_private(&file).map_err(Error::io(path, "made private"))?;
    drop(file);
    // A link that was put there meanwhile is replaced, not followed.
    fs::rename(&temporary.path, path).map_err(Error::io(path, "replaced"))?;
    temporary.moved = true;
    Ok(())
}

/// Removes the file at `path`, or the link. Returns false if there was none.
pub fn remove(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path, "removed")(error)),
    }
}

/// A file that is removed unless it was moved to its place.
struct Temporary {
    path: PathBuf,
    moved: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.moved {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// A new, empty file in the same folder as `path`: only there a rename is sure to be one step.
fn beside(path: &Path, access: Access, replaces: bool) -> Result<(File, Temporary), Error> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = path
        .file_name()
        .ok_or_else(|| Error::NotRegular { path: path.to_owned() })?;
    // A file that replaces another gets that one's permissions once it is filled, and is nobody's until then.
    let mode = if replaces { Access::Private } else { access };
    loop {
        let mut hidden = OsString::from(".");
        // Long names stay below the usual 255 bytes, whatever is added to them.
        hidden.push(if name.len() > 200 { "long".as_ref() } else { name });
        hidden.push(format!(
            ".{}-{}.tmp",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        ));
        let temporary = path.with_file_name(hidden);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        restrict(&mut options, mode);
        match options.open(&temporary) {
            Ok(file) => {
                return Ok((
                    file,
                    Temporary {
                        path: temporary,
                        moved: false,
                    },
                ));
            }
            // Left behind by a process of the same number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(path, "written")(error)),
        }
    }
}

/// Creates the folder `path` and those above it; the folder itself is the owner's alone afterwards.
pub fn private_folder(path: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(Error::io(path, "created"))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path)
            .map_err(Error::io(path, "read"))?
            .permissions()
            .mode()
            & 0o777;
        if mode != 0o700 {
            let only_mine = fs::Permissions::from_mode(0o700);
            fs::set_permissions(path, only_mine).map_err(Error::io(path, "made private"))?;
        }
    }
    Ok(())
}

/// Creates a file that a person names for output, or empties it.
pub fn create(path: &Path) -> std::io::Result<File> {
    File::create(path)
}

/// Opens a file at its end for writing, making it if need be; it is the owner's alone. Follows no link.
///
/// Each write lands whole behind what is there, also when several processes write.
pub fn append(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    restrict(&mut options, Access::Private);
    let file = regular(path, &options)?;
    make_private(&file).map_err(Error::io(path, "made private"))?;
    Ok(file)
}

/// Creates a private file without a name in `folder`, for reading and writing. It goes when it is closed, even by a crash. The
/// folder is created when needed.
pub fn nameless(folder: &Path) -> Result<File, Error> {
    private_folder(folder)?;
    nameless_in(folder)
}

/// The same in a folder that is there and stays as it is.
pub fn nameless_in(folder: &Path) -> Result<File, Error> {
    #[cfg(target_os = "linux")]
    {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_TMPFILE);
        if let Ok(file) = options.open(folder) {
            return Ok(file);
        }
        // Some file systems have no files without a name.
    }
    let path = folder.join("scratch");
    let (file, temporary) = beside(&path, Access::Private, false)?;
    // Removes the name.
    drop(temporary);
    Ok(file)
}

/// Opens a file to read parts of it. Follows no link.
pub fn open(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true);
    restrict(&mut options, Access::Private);
    regular(path, &options)
}

/// Reads a whole file of at most `limit_bytes`. Follows no link.
pub fn read_unlinked(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, Error> {
    contents(path, open(path)?, limit_bytes)
}

/// Reads a whole file of at most `limit_bytes`. Follows links, so that a user's configuration may be one.
pub fn read(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, Error> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    contents(path, regular(path, &options)?, limit_bytes)
}

/// Reads a regular file below `root`, whatever the path says: no link and no `..` leads out of it.
#[cfg(target_os = "linux")]
pub fn read_beneath(root: &Path, path: &Path, limit_bytes: u64) -> std::io::Result<Vec<u8>> {
    use rustix::fs::{Mode, OFlags, ResolveFlags};
    let folder = File::open(root)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = File::from(rustix::fs::openat2(&folder, path, flags, Mode::empty(), resolve)?);
    let about = file.metadata()?;
    if !about.is_file() || about.len() > limit_bytes {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, limit_bytes), &mut bytes)?;
    Ok(bytes)
}

/// Reads a regular file below `root`: the path is resolved first and must still be below it.
#[cfg(not(target_os = "linux"))]
pub fn read_beneath(root: &Path, path: &Path, limit_bytes: u64) -> std::io::Result<Vec<u8>> {
    let root = root.canonicalize()?;
    let path = root.join(path).canonicalize()?;
    let about = std::fs::metadata(&path)?;
    if !path.starts_with(&root) || !about.is_file() || about.len() > limit_bytes {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    std::fs::read(path)
}

/// Reads a file that holds a secret: an error when others may read it too. Follows no link.
pub fn read_private(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, Error> {
    let mut options = OpenOptions::new();
    options.read(true);
    restrict(&mut options, Access::Private);
    let file = regular(path, &options)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata().map_err(Error::io(path, "read"))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(Error::TooOpen { path: path.to_owned() });
        }
    }
    contents(path, file, limit_bytes)
}

fn contents(path: &Path, file: File, limit_bytes: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(limit_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(Error::io(path, "read"))?;
    if bytes.len() as u64 > limit_bytes {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            limit_bytes,
        });
    }
    Ok(bytes)
}

/// Opens what must be a regular file, without waiting for the other end of a pipe.
fn regular(path: &Path, options: &OpenOptions) -> Result<File, Error> {
    let not_regular = || Error::NotRegular { path: path.to_owned() };
    let file = options.open(path).map_err(|error| {
        // A link where none is followed, and a pipe without a reader.
        #[cfg(unix)]
        if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENXIO)) {
            return not_regular();
        }
        match dangling(path).filter(|_| error.kind() == io::ErrorKind::NotFound) {
            Some(link) => Error::Dangling { link },
            None => Error::io(path, "opened")(error),
        }
    })?;
    let is_file = file.metadata().map_err(Error::io(path, "read"))?.is_file();
    if is_file { Ok(file) } else { Err(not_regular()) }
}

/// The link, on the way to a path or at it, that leads nowhere. `None`: there is none.
fn dangling(path: &Path) -> Option<PathBuf> {
    let last = path.ancestors().find(|it| fs::symlink_metadata(it).is_ok())?;
    fs::metadata(last).is_err().then(|| last.to_owned())
}

#[cfg(unix)]
fn restrict(options: &mut OpenOptions, access: Access) {
    use std::os::unix::fs::OpenOptionsExt;
    let mode = match access {
        Access::Private => 0o600,
        Access::Shared => 0o666,
    };
    options
        .mode(mode)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
}

#[cfg(not(unix))]
fn restrict(_: &mut OpenOptions, _: Access) {}

/// Gives a new file the permissions and, where we may, the owner of the old one.
#[cfg(unix)]
fn keep(file: &File, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid())).ok();
    }
    file.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn keep(file: &File, old: &fs::Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}

#[cfg(unix)]
fn make_private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if file.metadata()?.permissions().mode() & 0o777 == 0o600 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(_: &File) -> io::Result<()> {
    Ok(())
}

/// The right to be the only one; given back when dropped and when the process dies in whatever way.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Empties its file, which names the process that has the lock.
    pub fn clear(&self) {
        self.file.set_len(0).ok();
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being started has a copy of the file until it runs.
        self.file.unlock().ok();
    }
}

/// Attempts of [`lock_soon`], 20 ms apart (2 s in all).
const LOCK_ATTEMPTS: u32 = 100;

/// Locks like [`lock`], and waits up to two seconds for another process. `None`: it still has the lock. Blocks.
pub fn lock_soon(path: &Path) -> Result<Option<Lock>, Error> {
    for attempt in 0..=LOCK_ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        match lock(path)? {
            Locked::Ours(lock) => return Ok(Some(lock)),
            Locked::Theirs { .. } => {}
        }
    }
    Ok(None)
}

/// Result of asking for a [`Lock`].
#[derive(Debug)]
pub enum Locked {
    Ours(Lock),
    /// Somebody else has it: the process that wrote its number into the file, if it can be read.
    Theirs {
        process: Option<u32>,
    },
}

/// Locks by the file at `path`, which is made if need be and never removed. Does not wait. A file that is there can be
/// locked where nothing can be written.
///
/// Network filesystems may not know locks; that is an error whose cause is [`io::ErrorKind::Unsupported`] or the like.
pub fn lock(path: &Path) -> Result<Locked, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    restrict(&mut options, Access::Private);
    let mut file = match regular(path, &options) {
        Err(Error::Io { source, .. })
            if matches!(
                source.kind(),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
            ) =>
        {
            open(path).map_err(|_| Error::io(path, "opened")(source))?
        }
        opened => opened?,
    };
    match file.try_lock() {
        Ok(()) => {
            // Who holds it is said for people only: the lock itself does not depend on the text.
            file.set_len(0)
                .and_then(|()| writeln!(file, "{}", std::process::id()))
                .ok();
            Ok(Locked::Ours(Lock { file }))
        }
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            file.take(32).read_to_string(&mut text).ok();
            Ok(Locked::Theirs {
                process: text.trim().parse().ok(),
            })
        }
        Err(TryLockError::Error(source)) => Err(Error::io(path, "locked")(source)),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }

    /// A file that was replaced and never brought to the disk may be empty after a power failure.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_brought_to_the_disk_replaces_nothing() {
        use crate::os::refused_sync::without_sync;
        let folder = folder();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let refused = |result: Result<(), Error>| match result {
            Err(Error::Io { source, .. }) => source.raw_os_error(),
            other => panic!("{other:?}"),
        };
        type Write = fn(&Path) -> Result<(), Error>;
        let writes: [Write; 3] = [
            |path| write(path, b"new", Access::Private),
            |path| write(path, b"new", Access::Shared),
            |path| write_secret(path, b"new"),
        ];
        for write in writes {
            assert_eq!(refused(without_sync(|| write(&path))), Some(libc::EIO));
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(
                fs::read_dir(folder.path()).unwrap().count(),
                1,
                "nothing is left beside it"
            );
            write(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            fs::write(&path, "old").unwrap();
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = folder();
        let path = folder.path().join("config.toml");
        for text in ["a long first text", "short", ""] {
            write(&path, text.as_bytes(), Access::Shared).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names(folder.path()), ["config.toml"]);
        }
    }

    #[test]
    fn a_new_file_has_the_asked_mode_and_an_old_one_keeps_its_own() {
        let folder = folder();
        let path = folder.path().join("token");
        write(&path, b"1", Access::Private).unwrap();
        assert_eq!(mode(&path), 0o600);
        for kept in [0o640, 0o755, 0o400] {
            set_mode(&path, kept);
            write(&path, b"2", Access::Private).unwrap();
            assert_eq!(mode(&path), kept);
        }
        let (shared, plain) = (folder.path().join("shared"), folder.path().join("plain"));
        write(&shared, b"", Access::Shared).unwrap();
        File::create(&plain).unwrap();
        assert_eq!(mode(&shared), mode(&plain), "the umask decides");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = folder();
        let (target, link) = (folder.path().join("dotfiles"), folder.path().join("config"));
        fs::write(&target, "old").unwrap();
        symlink("dotfiles", &link).unwrap();
        write(&link, b"new", Access::Private).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }

    #[test]
    fn what_cannot_be_written_is_left_alone() {
        let folder = folder();
        let (file, inner) = (folder.path().join("file"), folder.path().join("folder"));
        fs::write(&file, "old").unwrap();
        fs::create_dir(&inner).unwrap();
        pipe(&folder.path().join("pipe"));
        symlink("nowhere", folder.path().join("dangling")).unwrap();
        let before = names(folder.path());
        let cases = [
            ("folder", "NotRegular"),
            ("pipe", "NotRegular"),
            ("dangling", "Io"),
            ("absent/file", "Io"),
            ("file/below", "Io"),
            ("..", "NotRegular"),
        ];
        for (name, expected) in cases {
            let error = write(&folder.path().join(name), b"new", Access::Private).unwrap_err();
            assert!(format!("{error:?}").starts_with(expected), "{name}: {error:?}");
        }
        assert_eq!(names(folder.path()), before);
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    }

    #[test]
    fn a_long_name_can_be_written() {
        let folder = folder();
        let path = folder.path().join("x".repeat(255));
        write(&path, b"1", Access::Private).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"1");
    }

    #[test]
    fn readers_see_the_old_or_the_new_file_and_never_less() {
        let folder = folder();
        let path = folder.path().join("file");
        let contents = ["a".repeat(100_000), "b".repeat(50_000)];
        write(&path, contents[0].as_bytes(), Access::Private).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..40 {
                    write(&path, contents[round % 2].as_bytes(), Access::Private).unwrap();
                }
            });
            while !writer.is_finished() {
                let seen = fs::read_to_string(&path).unwrap();
                assert!(contents.contains(&seen), "{} bytes", seen.len());
            }
        });
    }

    #[test]
    fn a_private_folder_is_private_even_if_it_was_not() {
        let folder = folder();
        let path = folder.path().join("a/b");
        private_folder(&path).unwrap();
        assert_eq!((mode(&path), mode(&folder.path().join("a"))), (0o700, 0o700));
        set_mode(&path, 0o755);
        private_folder(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(private_folder(&folder.path().join("file")).is_err());
    }

    #[test]
    fn appending_goes_to_the_end_of_private_regular_files_only() {
        let folder = folder();
        let path = folder.path().join("log");
        append(&path).unwrap().write_all(b"one ").unwrap();
        set_mode(&path, 0o644);
        append(&path).unwrap().write_all(b"two").unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), mode(&path)),
            ("one two", 0o600)
        );

        symlink("log", folder.path().join("link")).unwrap();
        pipe(&folder.path().join("pipe"));
        for name in ["link", "pipe"] {
            let error = append(&folder.path().join(name)).unwrap_err();
            assert!(matches!(error, Error::NotRegular { .. }), "{name}: {error:?}");
        }
        assert!(append(folder.path()).is_err());
        assert!(append(&folder.path().join("absent/log")).unwrap_err().is_absent());
    }

    #[test]
    fn reading_stops_at_the_limit_and_never_waits() {
        let folder = folder();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert!(matches!(
            read(&path, 4).unwrap_err(),
            Error::TooLarge { limit_bytes: 4, .. }
        ));
        symlink("file", folder.path().join("link")).unwrap();
        assert_eq!(read(&folder.path().join("link"), 5).unwrap(), b"12345");
        pipe(&folder.path().join("pipe"));
        for name in ["pipe", "."] {
            let error = read(&folder.path().join(name), 5).unwrap_err();
            assert!(matches!(error, Error::NotRegular { .. }), "{name}: {error:?}");
        }
        assert!(read(&folder.path().join("absent"), 5).unwrap_err().is_absent());
        assert!(read(&folder.path().join("absent/file"), 5).unwrap_err().is_absent());
        // A link is there, whatever it leads to: a disk that is not mounted must not look like no file.
        symlink("nowhere", folder.path().join("lost")).unwrap();
        for name in ["lost", "lost/deep/file"] {
            let error = read(&folder.path().join(name), 5).unwrap_err();
            assert!(
                !error.is_absent() && error.to_string().contains("lost is a link"),
                "{name}: {error}"
            );
        }
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused_with_the_remedy() {
        let folder = folder();
        let path = folder.path().join("key");
        fs::write(&path, "secret").unwrap();
        for (mode, readable) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o602, false),
        ] {
            set_mode(&path, mode);
            match read_private(&path, 100) {
                Ok(bytes) => assert!(readable && bytes == b"secret", "{mode:o}"),
                Err(error) => {
                    assert!(
                        !readable && error.to_string().contains("chmod 600"),
                        "{mode:o}: {error}"
                    );
                }
            }
        }
        set_mode(&path, 0o600);
        symlink("key", folder.path().join("link")).unwrap();
        assert!(matches!(
            read_private(&folder.path().join("link"), 100).unwrap_err(),
            Error::NotRegular { .. }
        ));
    }

    #[test]
    fn a_secret_is_private_whatever_was_there_and_no_link_is_followed() {
        let folder = folder();
        let path = folder.path().join("key");
        for old in [None, Some(0o644), Some(0o600), Some(0o400)] {
            if let Some(old) = old {
                set_mode(&path, old);
            }
            write_secret(&path, b"key").unwrap();
            assert_eq!(
                (mode(&path), fs::read(&path).unwrap()),
                (0o600, b"key".to_vec()),
                "{old:?}"
            );
        }
        let target = folder.path().join("target");
        fs::write(&target, "other").unwrap();
        let link = folder.path().join("link");
        symlink(&target, &link).unwrap();
        assert!(matches!(write_secret(&link, b"key"), Err(Error::NotRegular { .. })));
        assert_eq!(fs::read(&target).unwrap(), b"other");
        assert!(remove(&link).unwrap() && !remove(&link).unwrap());
        assert_eq!(names(folder.path()), ["key", "target"]);
    }

    #[test]
    fn a_lock_is_for_one_and_says_who_has_it() {
        let folder = folder();
        let path = folder.path().join("session.lock");
        let Locked::Ours(ours) = lock(&path).unwrap() else {
            panic!("nobody else can have it")
        };
        match lock(&path).unwrap() {
            Locked::Theirs { process } => assert_eq!(process, Some(std::process::id())),
            Locked::Ours(_) => panic!("two have it"),
        }
        drop(ours);
        assert!(matches!(lock(&path).unwrap(), Locked::Ours(_)));
        assert_eq!(mode(&path), 0o600);
    }
}
