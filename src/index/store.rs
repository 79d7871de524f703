//! Chunks and names of files on the disk, so that the next program need not cut the files again.
//!
//! There is one file for a repository and its worktrees. It is written as a whole and put in the place of the old one: readers see
//! one or the other. What is cut off, damaged or of another version counts as absent. Words are hashes, so but for the names that
//! code defines no text of a file is in it.
//! Chunks are found by the hash of a file's name and content, so that branches and worktrees share them.

use std::{
    collections::HashMap,
    fs,
    io::{self, BufReader, BufWriter, Read, Write},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{Chunk, Entry, Parts, TextHash, symbol::Names, word::Words};
use crate::{
    config::Fingerprint,
    os::file::{self, Access},
};

/// The folder below that of caches.
const FOLDER: &str = "words";
/// The beginning of a file. Its last byte is the format: another one where files are cut, or words are taken, in another way.
const MAGIC: &[u8; 8] = b"sheafw\0\x03";
/// Maximum size of a file, in bytes. A larger one is not read.
const MOST_BYTES: u64 = 256 << 20;
/// Maximum size of all files; the oldest ones go.
const MOST_BYTES_OF_ALL: u64 = 512 << 20;

/// Everything that is known of a repository.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub entries: HashMap<PathBuf, Arc<Entry>>,
    /// The parts of files, also of those that are not there now, by the hash of name and content.
    pub contents: HashMap<TextHash, Arc<Parts>>,
}

/// The file with the chunks of the repository at `root`, below the folder of caches. It need not exist.
pub fn place(cache: &Path, root: &Path) -> PathBuf {
    let shared = repository(root).unwrap_or_else(|| root.to_owned());
    let name = Fingerprint::of(&[shared.as_os_str().as_bytes()]);
    cache.join(FOLDER).join(name.to_string())
}

/// The folder of git's that a folder and its worktrees share. `None`: there is none.
fn repository(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if fs::symlink_metadata(&git).ok()?.is_dir() {
        return git.canonicalize().ok();
    }
    let bytes = file::read_beneath(root, ".git".as_ref(), 4096).ok()?;
    let folder = String::from_utf8(bytes)
        .ok()?
        .strip_prefix("gitdir:")?
        .trim()
        .to_owned();
    let folder = root.join(folder).canonicalize().ok()?;
    let above = folder.parent().filter(|it| it.ends_with("worktrees"));
    Some(above.and_then(Path::parent).unwrap_or(&folder).to_owned())
}

/// Deletes all files. Returns the bytes that they had; `None` if there was none.
pub fn clear(cache: &Path) -> io::Result<Option<u64>> {
    let files = files(cache);
    for (path, ..) in &files {
        fs::remove_file(path)?;
    }
    Ok((!files.is_empty()).then(|| files.iter().map(|it| it.1).sum()))
}

/// Size of all files, in bytes.
pub fn stored_bytes(cache: &Path) -> u64 {
    files(cache).iter().map(|it| it.1).sum()
}

/// The files with their sizes and times of change.
fn files(cache: &Path) -> Vec<(PathBuf, u64, SystemTime)> {
    let entries = fs::read_dir(cache.join(FOLDER)).into_iter().flatten().flatten();
    let file = |it: fs::DirEntry| {
        let about = it.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((it.path(), about.len(), about.modified().ok()?))
    };
    entries.filter_map(file).collect()
}

/// Removes the oldest files but `kept` until all others together are small enough.
fn prune(kept: &Path, limit_bytes: u64) {
    let Some(cache) = kept.parent().and_then(Path::parent) else {
        return;
    };
    let mut files = files(cache);
    files.sort_by_key(|it| it.2);
    let mut total: u64 = files.iter().map(|it| it.1).sum();
    for (path, bytes, _) in files.iter().filter(|it| it.0 != kept) {
        if total <= limit_bytes {
            return;
        }
        if fs::remove_file(path).is_ok() {
            total -= bytes;
        }
    }
}

/// Reads what was stored; nothing if that cannot be used.
pub fn load(path: &Path) -> Known {
    match file::open(path) {
        Ok(file) => {
            let length = file.metadata().map_or(0, |it| it.len());
            let known = (length <= MOST_BYTES).then(|| decoded(BufReader::with_capacity(1 << 16, file), length));
            known.flatten().unwrap_or_else(|| {
                tracing::info!(path = %path.display(), "the stored words cannot be used: they are damaged or of another version");
                Known::default()
            })
        }
        Err(error) if error.is_absent() => Known::default(),
        Err(error) => {
            tracing::warn!(%error, "the stored words cannot be read");
            Known::default()
        }
    }
}

/// Stores what is known in the place of what was stored before.
pub fn save(path: &Path, known: &Known) -> Result<(), file::Error> {
    if let Some(folder) = path.parent() {
        file::private_folder(folder)?;
    }
    file::write_by(path, Access::Private, &mut |file| {
        let mut sum = Sum {
            to: BufWriter::with_capacity(1 << 16, file),
            crc: crc32fast::Hasher::new(),
        };
        encode(known, &mut sum)?;
        let crc = sum.crc.finalize();
        sum.to.write_all(&crc.to_le_bytes())?;
        sum.to.flush()
    })?;
    prune(path, MOST_BYTES_OF_ALL);
    Ok(())
}

/// Counts the checksum of what is written.
struct Sum<W> {
    to: W,
    crc: crc32fast::Hasher,
}

impl<W: Write> Write for Sum<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write_all(bytes)?;
        self.crc.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn encode(known: &Known, to: &mut impl Write) -> io::Result<()> {
    to.write_all(MAGIC)?;
    put(to, known.contents.len())?;
    for (hash, Parts { chunks, names }) in known.contents.iter().map(|(hash, it)| (hash, &**it)) {
        to.write_all(&hash.0)?;
        put(to, names.packed().len())?;
        to.write_all(names.packed())?;
        put(to, chunks.len())?;
        for it in chunks {
            to.write_all(&it.first.to_le_bytes())?;
            to.write_all(&it.last.to_le_bytes())?;
            to.write_all(&it.hash.0)?;
            to.write_all(&[u8::from(it.is_aside)])?;
            to.write_all(&it.words.length.to_le_bytes())?;
            let (hashes, counts) = it.words.parts();
            put(to, hashes.len())?;
            for hash in hashes {
                to.write_all(&hash.to_le_bytes())?;
            }
            to.write_all(counts)?;
        }
    }
    put(to, known.entries.len())?;
    for (path, entry) in &known.entries {
        let path = path.as_os_str().as_bytes();
        put(to, path.len())?;
        to.write_all(path)?;
        let since = entry
            .modified
            .and_then(|it| it.duration_since(SystemTime::UNIX_EPOCH).ok());
        to.write_all(&[u8::from(since.is_some()), u8::from(entry.is_aside)])?;
        let since = since.unwrap_or_default();
        to.write_all(&since.as_secs().to_le_bytes())?;
        to.write_all(&since.subsec_nanos().to_le_bytes())?;
        to.write_all(&entry.bytes.to_le_bytes())?;
        to.write_all(&entry.content.0)?;
    }
    Ok(())
}

fn put(to: &mut impl Write, count: usize) -> io::Result<()> {
    let count = u32::try_from(count).map_err(io::Error::other)?;
    to.write_all(&count.to_le_bytes())
}

/// What [`encode`] has written, with its checksum, `length` bytes in all. `None`: it is something else, or damaged.
fn decoded(from: impl Read, length: u64) -> Option<Known> {
    let mut from = Source {
        from,
        crc: crc32fast::Hasher::new(),
        left: usize::try_from(length).ok()?.checked_sub(CHECKSUM_BYTES)?,
    };
    if from.array()? != *MAGIC {
        return None;
    }
    let mut known = Known::default();
    for _ in 0..from.number()? {
        let hash = TextHash(from.array()?);
        let length = from.number()? as usize;
        let names = Names::of_packed(from.take(length)?.into());
        let chunks = (0..from.number()?)
            .map(|_| chunk(&mut from))
            .collect::<Option<Box<[_]>>>()?;
        known.contents.insert(hash, Arc::new(Parts { chunks, names }));
    }
    for _ in 0..from.number()? {
        let length = from.number()?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(from.take(length as usize)?));
        let [is_timed, is_aside] = from.array()?;
        let (seconds, nanoseconds) = (u64::from_le_bytes(from.array()?), from.number()?);
        let since = Duration::from_secs(seconds).checked_add(Duration::from_nanos(nanoseconds.into()))?;
        let bytes = u64::from_le_bytes(from.array()?);
        let content = TextHash(from.array()?);
        let entry = Entry {
            modified: (is_timed == 1)
                .then(|| SystemTime::UNIX_EPOCH.checked_add(since))
                .flatten(),
            bytes,
            content,
            parts: Arc::clone(known.contents.get(&content)?),
            is_aside: is_aside == 1,
        };
        known.entries.insert(path, Arc::new(entry));
    }
    from.ends_well().then_some(known)
}

fn chunk(from: &mut Source<impl Read>) -> Option<Chunk> {
    let (first, last) = (from.number()?, from.number()?);
    if !(1..=last).contains(&first) {
        return None;
    }
    let hash = TextHash(from.array()?);
    let [is_aside] = from.array()?;
    let (length, count) = (from.number()?, from.number()? as usize);
    let hashes = from.take(count.checked_mul(4)?)?;
    let (hashes, _) = hashes.as_chunks();
    let hashes = hashes.iter().map(|it| u32::from_le_bytes(*it)).collect();
    Some(Chunk {
        first,
        last,
        hash,
        words: Words::of_parts(hashes, from.take(count)?.into(), length),
        is_aside: is_aside == 1,
    })
}

/// Bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 4;

/// What is still to be read before the checksum, which is counted meanwhile: nothing read is sound before its end.
struct Source<R> {
    from: R,
    crc: crc32fast::Hasher,
    left: usize,
}

impl<R: Read> Source<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Option<()> {
        self.left = self.left.checked_sub(bytes.len())?;
        self.from.read_exact(bytes).ok()?;
        self.crc.update(bytes);
        Some(())
    }

    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        // No more memory than there are bytes.
        let mut bytes = vec![0; count.min(self.left.saturating_add(1))];
        self.fill(&mut bytes)?;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut array = [0; N];
        self.fill(&mut array)?;
        Some(array)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads the checksum. Returns true if it is that of all that was read.
    fn ends_well(mut self) -> bool {
        let mut crc = [0; CHECKSUM_BYTES];
        self.left == 0 && self.from.read_exact(&mut crc).is_ok() && self.crc.finalize() == u32::from_le_bytes(crc)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use pretty_assertions::assert_eq;

    use super::{super::*, *};

    /// A file for each language, cut.
    fn known() -> Known {
        let index = Index::default();
        let files: Vec<File> = SOURCES.iter().map(|(name, text)| file(name, text.len())).collect();
        index.survey(&files, &read, &|| false);
        let mut known = index.known.lock().unwrap();
        std::mem::take(&mut known.kept)
    }

    const SOURCES: [(&str, &str); 8] = [
        (
            "a.rs",
            "/// Adds.\nfn add(one: u32) -> u32 {\n    one + 1\n}\n\nmod tests {\n    fn works() {}\n}\n",
        ),
        (
            "b.py",
            "class Cart:\n    \"\"\"A cart of items.\"\"\"\n\n    def total(self):\n        return sum(self.items)\n",
        ),
        (
            "c.ts",
            "export function parseQuery(text: string) {\n  return text.split('&');\n}\n",
        ),
        ("d.go", "package main\n\nfunc main() { println(\"x\") }\n"),
        ("e.java", "class A {\n  int getUserName() { return 1; }\n}\n"),
        ("f.rb", "def each_item\n  yield 1\nend\n"),
        ("g.cpp", "int main() { return 0; }\n"),
        ("docs/h.md", "# Settings\n\nWhat may be configured.\n"),
    ];

    fn file(name: &str, bytes: usize) -> File {
        File {
            path: PathBuf::from("/work").join(name),
            shown: name.to_owned(),
            modified: Some(SystemTime::UNIX_EPOCH + Duration::new(7, 9)),
            bytes: bytes as u64,
        }
    }

    fn read(path: &Path) -> Option<Vec<u8>> {
        let name = path.strip_prefix("/work").ok()?;
        let found = SOURCES.iter().find(|it| Path::new(it.0) == name)?;
        Some(found.1.as_bytes().to_vec())
    }

    fn shown(known: &Known) -> String {
        let mut lines: Vec<String> = Vec::new();
        for (path, entry) in &known.entries {
            let mut line = format!(
                "{} {:?} {} {}",
                path.display(),
                entry.modified,
                entry.bytes,
                entry.is_aside
            );
            for it in &entry.parts.chunks {
                let (hashes, counts) = it.words.parts();
                let words = hashes.iter().zip(counts);
                write!(
                    line,
                    " {}-{} {:?} {} {}",
                    it.first, it.last, it.hash, it.is_aside, it.words.length
                )
                .unwrap();
                write!(line, " {:?}", words.collect::<Vec<_>>()).unwrap();
            }
            write!(line, " {:?}", entry.parts.names.iter().collect::<Vec<_>>()).unwrap();
            lines.push(line);
        }
        lines.sort();
        lines.join("\n")
    }

    #[test]
    fn what_is_stored_is_read_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = place(folder.path(), folder.path());
        assert_eq!(load(&path).entries.len(), 0);
        let known = known();
        save(&path, &known).unwrap();
        assert_eq!(shown(&load(&path)), shown(&known));
        let bytes = fs::read(&path).unwrap();
        for cut in 0..bytes.len() {
            assert!(decoded(&bytes[..cut], cut as u64).is_none(), "{cut}");
            assert!(decoded(&bytes[..cut], bytes.len() as u64).is_none(), "{cut}");
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(decoded(&*other, other.len() as u64).is_none(), "{at}");
        }
        // Counts that promise more than there is take no memory, whatever the checksum says.
        for at in 0..bytes.len() - 8 {
            let mut other = bytes[..bytes.len() - 4].to_vec();
            other[at..at + 4].copy_from_slice(&[0xff; 4]);
            let crc = crc32fast::hash(&other);
            other.extend(crc.to_le_bytes());
            decoded(&*other, other.len() as u64);
        }
    }

    #[test]
    fn another_way_of_cutting_has_another_format() {
        let print = Fingerprint::of(&[shown(&known()).as_bytes()]).to_string();
        assert_eq!(
            (MAGIC[7], print.as_str()),
            (3, "e6a83d910888c2e4e823a739ccadc276e22ff85225a31cfff8d843507b1fe854"),
            "files are cut otherwise: increase the last byte of MAGIC, else stored words are mixed with new ones"
        );
    }

    #[test]
    fn worktrees_share_a_file_and_old_files_go() {
        let folder = tempfile::tempdir().unwrap();
        let at = |it: &str| folder.path().join(it);
        for made in ["one/.git/worktrees/two", "two", "three", "cache"] {
            fs::create_dir_all(at(made)).unwrap();
        }
        fs::write(
            at("two/.git"),
            format!("gitdir: {}\n", at("one/.git/worktrees/two").display()),
        )
        .unwrap();
        let place = |it: &str| super::place(&at("cache"), &at(it));
        assert_eq!(place("one"), place("two"));
        assert_ne!(place("one"), place("three"));
        let known = known();
        for root in ["one", "three"] {
            save(&place(root), &known).unwrap();
        }
        let bytes = stored_bytes(&at("cache"));
        fs::File::open(place("one"))
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        prune(&place("three"), bytes - 1);
        assert!(!place("one").exists() && place("three").exists());
        assert_eq!(clear(&at("cache")).unwrap(), Some(bytes / 2));
        assert_eq!(clear(&at("cache")).unwrap(), None);
    }
}
