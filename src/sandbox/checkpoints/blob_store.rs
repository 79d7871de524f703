//! Bytes under their hash, in a folder of a conversation's own, of which there are only so many.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::path_state::hashed;
use crate::os::file;

/// The name of the list of steps in a conversation's folder.
pub const LIST: &str = "steps";
/// Maximum number of conversations with stored undo data; the least recently used are removed.
pub const MOST_CONVERSATIONS: usize = 64;
/// Maximum size of all undo data, in bytes.
pub const MOST_IN_ALL: u64 = 2 << 30;

/// Store of one conversation's blobs: bytes under their hash, in a folder.
#[derive(Debug)]
pub struct BlobStore {
    folder: PathBuf,
    pub most_bytes: u64,
    /// By hash.
    sizes: BTreeMap<String, u64>,
    bytes: u64,
    pub is_made: bool,
}

/// Durability that a write needs before it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On disk before the call returns.
    Synced,
    /// Written when the system does; a blob torn by a crash is recognised by its hash.
    Later,
}

impl BlobStore {
    /// Opens the store in a conversation's `folder`, which is created with the first blob.
    pub fn open(folder: PathBuf, most_bytes: u64) -> Self {
        let mut sizes = BTreeMap::new();
        for entry in fs::read_dir(folder.join("kept")).into_iter().flatten().flatten() {
            let size = entry.metadata().map_or(0, |it| it.len());
            sizes.insert(entry.file_name().to_string_lossy().into_owned(), size);
        }
        Self {
            folder,
            most_bytes,
            bytes: sizes.values().sum(),
            sizes,
            is_made: false,
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns true if `bytes` more bytes fit.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.bytes.saturating_add(bytes) <= self.most_bytes
    }

    /// Returns true if the blob is stored.
    pub fn has(&self, hash: &str, bytes: &[u8]) -> bool {
        self.sizes.get(hash) == Some(&(bytes.len() as u64))
    }

    /// Puts bytes under their hash. There must be room.
    pub fn put(&mut self, hash: &str, bytes: &[u8], care: Durability) -> io::Result<()> {
        if self.has(hash, bytes) {
            return Ok(());
        }
        self.make()?;
        let path = self.at(hash);
        match care {
            Durability::Synced => file::write(&path, bytes, file::Access::Private).map_err(io::Error::other)?,
            Durability::Later => {
                // What a crash has torn goes.
                if let Some(size) = self.sizes.remove(hash) {
                    self.bytes -= size;
                    fs::remove_file(&path).ok();
                }
                let file = file::append(&path).map_err(io::Error::other);
                if let Err(error) = file.and_then(|mut it| it.write_all(bytes)) {
                    fs::remove_file(&path).ok();
                    return Err(error);
                }
            }
        }
        let was = self.sizes.insert(hash.to_owned(), bytes.len() as u64);
        self.bytes = self.bytes + bytes.len() as u64 - was.unwrap_or_default();
        Ok(())
    }

    /// Bytes that still are what they were when they were kept.
    pub fn get(&self, hash: &str) -> Option<Arc<[u8]>> {
        let bytes = file::read(&self.at(hash), self.most_bytes).ok()?;
        (hashed(&bytes) == hash).then(|| bytes.into())
    }

    /// Drops all but these.
    pub fn retain(&mut self, used: &BTreeSet<&str>) {
        let folder = self.folder.join("kept");
        self.sizes.retain(|hash, _| {
            let is_used = used.contains(hash.as_str());
            if !is_used {
                fs::remove_file(folder.join(hash)).ok();
            }
            is_used
        });
        self.bytes = self.sizes.values().sum();
    }

    /// Makes the folder, once; then old conversations are pruned.
    pub fn make(&mut self) -> io::Result<()> {
        if !self.is_made {
            file::private_folder(&self.folder.join("kept")).map_err(io::Error::other)?;
            if let Some(all) = self.folder.parent() {
                prune(all, &self.folder, MOST_IN_ALL - self.most_bytes.min(MOST_IN_ALL));
            }
            self.is_made = true;
        }
        Ok(())
    }

    fn at(&self, hash: &str) -> PathBuf {
        // The list is ours, but a name from a file is never trusted to be a name.
        let name: String = hash.chars().filter(char::is_ascii_hexdigit).collect();
        self.folder.join("kept").join(name)
    }
}

/// The conversations of which something is kept: the name of the folder, its bytes, when it was last used.
pub fn stores(folder: &Path) -> Vec<(String, u64, SystemTime)> {
    let folders = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    let stores = folders.filter(|it| it.join("kept").is_dir()).map(|it| {
        let files = fs::read_dir(it.join("kept")).into_iter().flatten().flatten();
        let bytes = files.filter_map(|it| it.metadata().ok()).map(|it| it.len()).sum();
        let name = it.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, bytes, used(&it))
    });
    stores.collect()
}

fn used(folder: &Path) -> SystemTime {
    let used = fs::metadata(folder.join(LIST)).and_then(|it| it.modified());
    used.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Age up to which a conversation may be in use and is not pruned.
const RECENT: Duration = Duration::from_hours(24);

/// Removes the conversations that were used longest ago, but not `own`, until the others keep no more than so many bytes.
pub fn prune(folder: &Path, own: &Path, most_bytes: u64) {
    let mut others: Vec<_> = stores(folder)
        .into_iter()
        .map(|(name, bytes, used)| (used, folder.join(name), bytes))
        .filter(|it| it.1 != own)
        .collect();
    others.sort();
    let mut bytes: u64 = others.iter().map(|it| it.2).sum();
    let mut count = others.len() + 1;
    for (used, path, its) in others {
        if count <= MOST_CONVERSATIONS && bytes <= most_bytes {
            return;
        }
        // Another window may be in the middle of it: such a one goes only where twice as much is kept.
        let is_recent = used.elapsed().map_or(true, |it| it < RECENT);
        if is_recent && count <= MOST_CONVERSATIONS && bytes <= most_bytes.saturating_mul(2) {
            continue;
        }
        fs::remove_dir_all(path).ok();
        bytes -= its;
        count -= 1;
    }
}
