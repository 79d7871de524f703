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
        let file = file::nameless(folder).map_err(io::Error::other)?;
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
}

impl ScratchFile {
    /// Creates it in `folder`, which is created when needed.
    pub fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            file: NamelessFile::new(folder)?,
            end: AtomicU64::new(0),
        })
    }

    /// Writes `bytes` at the end. Returns their offset. After an error the space stays unused.
    pub fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(bytes, at)?;
        Ok(at)
    }

    /// Reads `length` bytes that were written at `at`.
    pub fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
