//! A file for bytes that are needed again later, and not in memory meanwhile. It has no name, so it goes with the program.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use super::file;

/// A file that is written at its end and read anywhere.
#[derive(Debug)]
pub struct ScratchFile {
    file: File,
    end: AtomicU64,
}

impl ScratchFile {
    /// Creates it in `folder`, which is created if need be.
    pub fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            file: file::nameless(folder).map_err(io::Error::other)?,
            end: AtomicU64::new(0),
        })
    }

    /// Writes `bytes` at the end. Returns the offset at which they are. What a full disk has cut off stays unused.
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
    fn what_was_written_is_read_from_any_place_and_nothing_is_in_the_folder() {
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
