//! A file for bytes that are needed again later but not kept in memory. It has no name, so it goes with the program.

use std::{
    fs::File,
    io,
    ops::Deref,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{
        LazyLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use rustix::process::{Resource, getrlimit};

use super::file;

/// Number of files that may be open at a time: a quarter of what the system allows, because sockets need descriptors, too.
static MAX_OPEN: LazyLock<usize> = LazyLock::new(|| {
    const USUAL_LIMIT: u64 = 1024;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(USUAL_LIMIT);
    usize::try_from(limit / 4).unwrap_or(usize::MAX)
});

/// Number of open files.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// A private file without a name. It goes when it is dropped.
#[derive(Debug)]
pub struct NamelessFile(File);

impl NamelessFile {
    /// Creates it in `folder`, which is created when needed. Fails while too many are open.
    pub fn new(folder: &Path) -> io::Result<Self> {
        Self::within(*MAX_OPEN, folder)
    }

    fn within(limit: usize, folder: &Path) -> io::Result<Self> {
        if OPEN.load(Ordering::Relaxed) >= limit {
            return Err(io::Error::other("too many scratch files are open"));
        }
        Self::counted(file::nameless(folder))
    }

    /// Creates it among the temporary files.
    pub fn temporary() -> io::Result<Self> {
        if OPEN.load(Ordering::Relaxed) >= *MAX_OPEN {
            return Err(io::Error::other("too many scratch files are open"));
        }
        Self::counted(file::nameless_in(&std::env::temp_dir()))
    }

    fn counted(made: Result<File, file::Error>) -> io::Result<Self> {
        let file = made.map_err(io::Error::other)?;
        OPEN.fetch_add(1, Ordering::Relaxed);
        Ok(Self(file))
    }
}

impl Deref for NamelessFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for NamelessFile {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A file that is written at its end and read anywhere.
#[derive(Debug)]
pub struct ScratchFile {
    file: NamelessFile,
    end: AtomicU64,
    /// As long as a test holds this for itself, the disk does not answer.
    #[cfg(test)]
    pub disk: std::sync::RwLock<()>,
}

impl ScratchFile {
    /// Creates it in `folder`, which is created when needed.
    pub fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            file: NamelessFile::new(folder)?,
            end: AtomicU64::new(0),
            #[cfg(test)]
            disk: std::sync::RwLock::default(),
        })
    }

    /// Writes `bytes` at the end. Returns their offset. After an error the space stays unused.
    pub fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        #[cfg(test)]
        let _disk = self.disk.read();
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(bytes, at)?;
        Ok(at)
    }

    /// Reads `length` bytes that were written at `at`.
    pub fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        #[cfg(test)]
        let _disk = self.disk.read();
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

/// Returns true if a file is on a disk of this machine. On a network file system, and on one that another program makes up,
/// a file may become shorter although nobody here has touched it, and a mapping of it ends the program then.
#[cfg(target_os = "linux")]
pub fn is_local(file: &File) -> bool {
    let kind = rustix::fs::fstatfs(file).map(|it| i128::from(it.f_type) & 0xffff_ffff);
    kind.is_ok_and(|it| !REMOTE.iter().any(|(_, magic)| i128::from(*magic) == it))
}

#[cfg(not(target_os = "linux"))]
pub fn is_local(file: &File) -> bool {
    const LOCAL: u32 = 0x1000;
    rustix::fs::fstatfs(file).is_ok_and(|it| it.f_flags & LOCAL != 0)
}

/// File systems that are not only this machine's, with the numbers by which the kernel knows them.
#[cfg(target_os = "linux")]
const REMOTE: [(&str, u32); 22] = [
    ("9p", 0x0102_1997),
    ("afs", 0x5346_414f),
    ("beegfs", 0x1983_0326),
    ("ceph", 0x00c3_6400),
    ("cifs", 0xff53_4d42),
    ("coda", 0x7375_7245),
    ("fuse", 0x6573_5546),
    ("gfs2", 0x0116_1970),
    ("gpfs", 0x4750_4653),
    ("kafs", 0x6b41_4653),
    ("lustre", 0x0bd0_0bd0),
    ("ncp", 0x0000_564c),
    ("nfs", 0x0000_6969),
    ("ocfs2", 0x7461_636f),
    ("orangefs", 0x2003_0528),
    ("panfs", 0xaad7_aaea),
    ("prl_fs", 0x7c7c_6673),
    ("smb", 0x0000_517b),
    ("smb2", 0xfe53_4d42),
    ("vboxsf", 0x786f_4256),
    ("vmhgfs", 0xbacb_acbc),
    ("vxfs", 0xa501_fcf5),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn network_file_systems_are_told_from_disks() {
        for name in ["nfs", "cifs", "smb2", "fuse", "9p", "ceph", "lustre", "afs"] {
            assert!(REMOTE.iter().any(|it| it.0 == name), "{name}");
        }
        // Of ext, Btrfs, XFS, tmpfs and overlayfs none is one.
        for magic in [0xef53, 0x9123_683e, 0x5846_5342, 0x0102_1994, 0x794c_7630] {
            assert!(!REMOTE.iter().any(|it| it.1 == magic), "{magic:x}");
        }
        // What the kernel makes up itself is on this machine.
        assert!(is_local(&File::open("/proc/self/status").expect("it is there")));
    }

    #[test]
    fn no_more_files_are_open_than_may_be() {
        let folder = tempfile::tempdir().expect("a folder");
        // Other tests open some, too, but fewer.
        let open: Vec<_> = (0..1000)
            .map_while(|_| NamelessFile::within(200, folder.path()).ok())
            .collect();
        assert!((50..=200).contains(&open.len()), "{}", open.len());
        assert!(NamelessFile::within(1, folder.path()).is_err());
        drop(open);
        assert!(NamelessFile::within(200, folder.path()).is_ok());
    }

    #[test]
    fn bytes_are_read_at_their_offsets_and_the_folder_stays_empty() {
        let folder = tempfile::tempdir().expect("a folder");
        let scratch = ScratchFile::new(&folder.path().join("new")).expect("a file");
        let places: Vec<_> = ["one", "", "zwei"]
            .map(|it| (scratch.append(it.as_bytes()).expect("there is room"), it))
            .into();
        for (at, text) in places.iter().rev() {
            assert_eq!(scratch.read(*at, text.len()).expect("it is there"), text.as_bytes());
        }
        assert!(scratch.read(5, 10).is_err(), "no more than was written");
        let left = std::fs::read_dir(folder.path().join("new")).expect("it was made");
        assert_eq!(left.count(), 0);
    }
}
