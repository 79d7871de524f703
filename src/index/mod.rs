//! Finds code by the words of a question: BM25 over chunks of files, kept in memory.
//!
//! Nothing is watched. A search brings along the files that are there now, with their size and time of change; what is new or
//! differs is cut into chunks again, the rest is as it was. Words are kept as hashes: a chunk costs a few hundred bytes, and all of
//! them together have a limit. They can be stored (`store`), so that a program begins with those of the last one.
//!
//! A chunk has an identity, the hash of its text. Whoever has vectors of texts ([`crate::embedding`]) ranks chunks by these
//! as well, and both rankings are fused.
//!
//! With its chunks each file has the names that it defines ([`Symbols`]).
//!
//! Files are read by a function that the caller gives, so that only what it may see is ever read.

mod chunk;
mod grammar;
mod ranking;
mod store;
mod symbol;
mod syntax;
mod word;

use std::{
    collections::HashSet,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::SystemTime,
};

use sha2::{Digest as _, Sha256};

use crate::text::WordList;
use store::Known;
use symbol::Names;
use word::Words;

pub use ranking::{Candidate, RankedBy, choose, fuse};
pub use store::{clear as clear_words, stored_bytes as stored_word_bytes};
pub use symbol::{Symbol, Symbols};
pub use syntax::errors;

/// Maximum size of an indexed file, in bytes. Larger ones are generated, or data.
pub const LONGEST_FILE: u64 = 512 * 1024;

/// Returns true if a file is in a language whose code can be read.
pub fn is_code(path: &Path) -> bool {
    grammar::of(path).is_some()
}

/// Maximum size of all chunks, in bytes.
const MOST_BYTES: usize = 128 << 20;

/// Threads that cut files into chunks.
const THREADS: usize = 2;

/// Maximum size of a text that is embedded, in bytes. A model reads less of it.
const LONGEST_TEXT: usize = 8 << 10;

/// So many files that were cut are stored before the look has ended.
const MANY_NEW: usize = 2000;
/// Fewer files that were cut are not worth storing.
const LEAST_NEW: usize = 32;
/// Contents that no file has may be as many as those that one has, and so many more.
const SPARE_CONTENTS: usize = 100;
/// Bytes of a file's entry beside its content, about.
const ENTRY_BYTES: usize = 256;
/// This part of the files must be new before all of them are stored again.
const NEW_PART: usize = 100;

/// The chunks of all files that were ever searched.
#[derive(Debug)]
pub struct Index {
    known: Mutex<KnownFiles>,
    /// Bytes of chunks that are kept.
    most_bytes: usize,
    /// Held while files are cut: a second search at the same time would do the same work again.
    cutting: Mutex<()>,
    /// The file in which they are stored. `None`: nowhere.
    path: Option<PathBuf>,
}

/// What is known, and what of it is stored.
#[derive(Debug, Default)]
struct KnownFiles {
    kept: Known,
    is_loaded: bool,
    /// Files that were cut since all were stored.
    unsaved: usize,
    writer: Option<JoinHandle<()>>,
}

/// A file that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub path: PathBuf,
    /// As people see it. Its words count as those of each of its chunks.
    pub shown: String,
    pub modified: Option<SystemTime>,
    pub bytes: u64,
}

/// A matching chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The place of the file in the list that was searched.
    pub file: usize,
    /// From 1, inclusive.
    pub lines: RangeInclusive<usize>,
    /// From nought to one.
    pub score: f64,
}

/// The identity of a chunk's text: the first 16 bytes of its SHA-256. Equal on all machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextHash(pub [u8; 16]);

impl TextHash {
    /// The hash of a text.
    pub fn of(text: &str) -> Self {
        let mut hash = [0; 16];
        for (to, from) in hash.iter_mut().zip(Sha256::digest(text)) {
            *to = from;
        }
        Self(hash)
    }
}

/// The chunks of the files of one search.
#[derive(Debug)]
pub struct Survey<'a> {
    files: &'a [File],
    /// In the order of the files; `None` where there was no time or no room.
    entries: Vec<Option<Arc<Entry>>>,
}

impl Survey<'_> {
    /// Files that could be read, of those that were given.
    pub fn searched(&self) -> usize {
        self.entries.iter().flatten().count()
    }

    /// True if all files were read: there was time and room.
    pub fn is_whole(&self) -> bool {
        self.searched() == self.files.len()
    }

    /// The number of chunks.
    pub fn len(&self) -> usize {
        self.entries.iter().flatten().map(|it| it.parts.chunks.len()).sum()
    }

    /// True if there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The texts of a file's chunks by their hashes, in order. Empty if it could not be read.
    pub fn of_file(&self, file: usize) -> Vec<TextHash> {
        let entry = self.entries.get(file).and_then(Option::as_ref);
        entry
            .map(|it| it.parts.chunks.iter().map(|it| it.hash).collect())
            .unwrap_or_default()
    }

    /// The texts of all chunks by their hashes, file by file, in the order of the files.
    pub fn hashes(&self) -> impl Iterator<Item = (usize, TextHash)> {
        let entries = self.entries.iter().enumerate();
        entries.flat_map(|(file, entry)| {
            entry
                .iter()
                .flat_map(move |it| it.parts.chunks.iter().map(move |it| (file, it.hash)))
        })
    }
}

/// The texts of a file's chunks with their hashes, as they are embedded. `None` when it was broken off.
///
/// `shown` is the path as people see it, `bytes` the content.
pub fn texts(shown: &str, bytes: &[u8], is_over: IsOver<'_>) -> Option<Vec<(TextHash, String)>> {
    if bytes.len() as u64 > LONGEST_FILE || !is_text(bytes) {
        return Some(Vec::new());
    }
    let text = String::from_utf8_lossy(bytes);
    let parts = chunk::Cutter::default().cut(Path::new(shown), &text, is_over)?;
    let texts = parts.iter().map(|it| embedded(shown, it));
    Some(texts.map(|it| (TextHash::of(&it), it)).collect())
}

/// The text of a chunk that is embedded: its path, the items around it, its lines.
fn embedded(shown: &str, part: &chunk::ChunkText<'_>) -> String {
    let mut text = format!("{shown}\n");
    for line in &part.above {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(part.text);
    text.truncate(text.floor_char_boundary(LONGEST_TEXT));
    text
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Files that could be searched, of those that were given.
    pub searched: usize,
    /// True if all files were searched: there was time and room.
    pub is_whole: bool,
}

/// Reads a file for the index. `None`: it cannot be read now.
pub type Read<'a> = &'a (dyn Fn(&Path) -> Option<Vec<u8>> + Sync);

/// Returns true when the caller has waited long enough.
pub type IsOver<'a> = &'a (dyn Fn() -> bool + Sync);

#[derive(Debug)]
struct Entry {
    modified: Option<SystemTime>,
    bytes: u64,
    /// Hash of its name and content.
    content: TextHash,
    parts: Arc<Parts>,
    is_aside: bool,
}

/// What is known of a file with this name and content.
#[derive(Debug)]
struct Parts {
    chunks: Box<[Chunk]>,
    names: Names,
}

#[derive(Debug)]
struct Chunk {
    /// From 1.
    first: u32,
    last: u32,
    hash: TextHash,
    words: Words,
    /// A test inside of code.
    is_aside: bool,
}

impl Entry {
    fn fits(&self, file: &File) -> bool {
        self.modified == file.modified && self.bytes == file.bytes
    }
}

impl Parts {
    /// Bytes in memory.
    fn size(&self) -> usize {
        let words: usize = self.chunks.iter().map(|it| it.words.size()).sum();
        words + std::mem::size_of_val(&*self.chunks) + self.names.size() + 256
    }
}

impl Default for Index {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            most_bytes: MOST_BYTES,
            cutting: Mutex::default(),
            path: None,
        }
    }
}

impl Index {
    /// An index that begins with the chunks stored for the repository at `root`, below the folder of caches, and stores new ones.
    /// Nothing is read yet.
    pub fn stored(cache: &Path, root: &Path) -> Self {
        Self {
            path: Some(store::place(cache, root)),
            ..Self::default()
        }
    }

    /// The chunks of `files` that answer a question best, at most `most`.
    ///
    /// What is not indexed yet is, as long as `is_over` says no; then the answer is made from what there is.
    pub fn search(
        &self,
        files: &[File],
        read: Read<'_>,
        question: &str,
        most: usize,
        is_over: IsOver<'_>,
    ) -> SearchResult {
        let survey = self.survey(files, read, is_over);
        SearchResult {
            hits: choose(survey.by_words(question), most),
            searched: survey.searched(),
            is_whole: survey.is_whole(),
        }
    }

    /// The chunks of `files`. What is not indexed yet is, as long as `is_over` says no.
    pub fn survey<'a>(&self, files: &'a [File], read: Read<'_>, is_over: IsOver<'_>) -> Survey<'a> {
        let entries = self.refresh(files, read, is_over);
        Survey { files, entries }
    }

    /// The entries of `files`, in their order; `None` where there was no time or no room.
    fn refresh(&self, files: &[File], read: Read<'_>, is_over: IsOver<'_>) -> Vec<Option<Arc<Entry>>> {
        let _cutting = self.cutting.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = self.cut(files, read, is_over);
        forget(&mut self.known().kept, files);
        self.save();
        entries
    }

    /// The same for some of the files that are searched, and without waiting: while others are being cut, for those that are.
    fn look(&self, files: &[File], read: Read<'_>, is_over: IsOver<'_>) -> Vec<Option<Arc<Entry>>> {
        match self.cutting.try_lock() {
            Ok(_) | Err(TryLockError::Poisoned(_)) => {
                let entries = self.cut(files, read, is_over);
                self.save();
                entries
            }
            Err(TryLockError::WouldBlock) => self.known().entries(files),
        }
    }

    /// What is known, with what was stored.
    fn known(&self) -> MutexGuard<'_, KnownFiles> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let (false, Some(path)) = (known.is_loaded, &self.path) {
            known.kept = store::load(path);
        }
        known.is_loaded = true;
        known
    }

    /// Cuts the files that are not known, as long as there is time and room. Those that have changed come first, and there is always
    /// room for them: they take the place of what they were.
    fn cut(&self, files: &[File], read: Read<'_>, is_over: IsOver<'_>) -> Vec<Option<Arc<Entry>>> {
        let (mut entries, (mut missing, new)) = {
            let known = self.known();
            let entries = known.entries(files);
            let missing = (0..files.len()).filter(|it| entries[*it].is_none());
            let has_changed = |it: &usize| known.kept.entries.contains_key(&files[*it].path);
            let missing: (Vec<usize>, Vec<usize>) = missing.partition(has_changed);
            (entries, missing)
        };
        let changed = missing.len();
        missing.extend(new);
        let used: usize = entries.iter().flatten().map(|it| it.parts.size()).sum();
        let room = AtomicUsize::new(self.most_bytes.saturating_sub(used));
        let next = AtomicUsize::new(0);
        let made = Mutex::new(Vec::new());
        let work = || {
            let mut cutter = chunk::Cutter::default();
            let mut own = Vec::new();
            while !is_over() {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                let has_room = nth < changed || room.load(Ordering::Relaxed) > 0;
                let Some(at) = missing.get(nth).filter(|_| has_room) else {
                    break;
                };
                let file = &files[*at];
                let kept = |content: &TextHash| self.known().kept.contents.get(content).map(Arc::clone);
                let Some((entry, is_read)) = entry(&mut cutter, file, read, &kept, is_over) else {
                    break;
                };
                let size = entry.parts.size();
                let left = |it: usize| Some(it.saturating_sub(size));
                // Always gives a new value.
                let _ = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
                let entry = Arc::new(entry);
                let mut known = self.known();
                // What cannot be read now may be read the next time, and nothing else of it will have changed.
                if is_read {
                    known.add(file, &entry);
                }
                if known.has_many_new()
                    && let Some(path) = &self.path
                {
                    known.save(path);
                }
                drop(known);
                own.push((*at, entry));
            }
            made.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
        };
        std::thread::scope(|scope| {
            for _ in 1..THREADS.min(missing.len()) {
                scope.spawn(work);
            }
            work();
        });
        for (at, entry) in made.into_inner().unwrap_or_else(PoisonError::into_inner) {
            entries[at] = Some(entry);
        }
        entries
    }

    /// Stores everything, if enough of it is new and it is to be stored.
    fn save(&self) {
        if let Some(path) = &self.path {
            self.known().save(path);
        }
    }
}

impl Drop for KnownFiles {
    fn drop(&mut self) {
        // A program that ends at once would end its writer.
        if let Some(writer) = self.writer.take() {
            drop(writer.join());
        }
    }
}

impl KnownFiles {
    /// The entries of `files`, in their order; `None` where a file has changed, or was never cut.
    fn entries(&self, files: &[File]) -> Vec<Option<Arc<Entry>>> {
        let entry = |it: &File| self.kept.entries.get(&it.path).filter(|entry| entry.fits(it));
        files.iter().map(|it| entry(it).map(Arc::clone)).collect()
    }

    fn add(&mut self, file: &File, entry: &Arc<Entry>) {
        self.unsaved += 1;
        self.kept.contents.insert(entry.content, Arc::clone(&entry.parts));
        self.kept.entries.insert(file.path.clone(), Arc::clone(entry));
    }

    /// True if so much is new that it would be a loss if the program ended now. Ever more, so that a first look writes at most twice
    /// what it has found.
    fn has_many_new(&self) -> bool {
        self.unsaved >= MANY_NEW.max(self.kept.entries.len() / 2)
    }

    /// Stores everything if enough of it is new, in a thread of its own.
    fn save(&mut self, path: &Path) {
        let least = LEAST_NEW.max(self.kept.entries.len() / NEW_PART);
        if self.unsaved < least || self.writer.as_ref().is_some_and(|it| !it.is_finished()) {
            return;
        }
        self.unsaved = 0;
        let (path, mut kept) = (path.to_owned(), self.kept.clone());
        let write = move || {
            // Files go, and so do worktrees.
            kept.entries.retain(|it, _| it.symlink_metadata().is_ok());
            if let Err(error) = store::save(&path, &kept) {
                tracing::warn!(%error, "the words of code are not stored");
            }
        };
        self.writer = std::thread::Builder::new().name("index".to_owned()).spawn(write).ok();
    }
}

/// Drops what is not of this search, where all of it would be too much, and contents that no file has, where they are the most.
fn forget(known: &mut Known, files: &[File]) {
    let total: usize = known.contents.values().map(|it| it.size()).sum();
    if total + known.entries.len() * ENTRY_BYTES > MOST_BYTES {
        let wanted: HashSet<_> = files.iter().map(|it| &it.path).collect();
        known.entries.retain(|path, _| wanted.contains(path));
    } else if known.contents.len() <= 2 * known.entries.len() + SPARE_CONTENTS {
        return;
    }
    let used: HashSet<_> = known.entries.values().map(|it| it.content).collect();
    known.contents.retain(|content, _| used.contains(content));
}

/// Reads and cuts a file, unless `kept` has the parts of its like; `None` when that was broken off. The entry of a file that cannot be
/// read is empty, and false is beside it.
fn entry(
    cutter: &mut chunk::Cutter,
    file: &File,
    read: Read<'_>,
    kept: &dyn Fn(&TextHash) -> Option<Arc<Parts>>,
    is_over: IsOver<'_>,
) -> Option<(Entry, bool)> {
    let bytes = (file.bytes <= LONGEST_FILE).then(|| read(&file.path));
    let is_read = !matches!(bytes, Some(None));
    let text = bytes
        .flatten()
        .filter(|it| is_text(it))
        .map(|it| String::from_utf8_lossy(&it).into_owned())
        .unwrap_or_default();
    let content = TextHash::of(&format!("{}\0{text}", file.shown));
    let entry = |parts| Entry {
        modified: file.modified,
        bytes: file.bytes,
        content,
        parts,
        is_aside: is_aside(&file.shown),
    };
    if let Some(parts) = kept(&content) {
        return Some((entry(parts), is_read));
    }
    let mut words = word::Counter::default();
    let mut chunks = Vec::new();
    let (pieces, tree) = cutter.read(Path::new(&file.shown), &text, is_over)?;
    for part in pieces {
        words.add(&file.shown);
        for line in &part.above {
            words.add(line);
        }
        for line in part.text.lines() {
            words.add(line);
        }
        chunks.push(Chunk {
            first: part.first,
            last: part.last,
            hash: TextHash::of(&embedded(&file.shown, &part)),
            words: words.take(),
            is_aside: part.is_test,
        });
    }
    let parts = Parts {
        chunks: chunks.into(),
        names: tree.map_or_else(Names::default, |it| Names::of(&it, &text)),
    };
    Some((entry(Arc::new(parts)), is_read))
}

fn is_text(bytes: &[u8]) -> bool {
    let start = bytes.get(..8192).unwrap_or(bytes);
    if start.contains(&0) {
        return false;
    }
    // What a program wrote for programs: a few endless lines.
    let lines = bytes.split(|it| *it == b'\n').count();
    bytes.len() < 4096 || bytes.len() / lines < 400
}

/// Tests, examples of data, documentation and the settings of tools, by their path.
fn is_aside(shown: &str) -> bool {
    const FOLDERS: WordList = WordList(
        "test tests spec specs testing testdata fixtures snapshots mocks e2e doc docs documentation bench benches
         benchmark benchmarks example examples sample samples",
    );
    const ENDINGS: WordList = WordList(
        "md mdx rst adoc txt snap lock csv svg toml ini cfg conf yml yaml json jsonc xml properties tmpl zsh fish css
         less scss",
    );
    let lower = shown.to_lowercase();
    let mut parts: Vec<_> = lower.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    // `.github/workflows`, `.eslintrc`.
    // `__tests__`, `test_site`, `runtime-tests`.
    let mut words = parts.iter().flat_map(|it| it.split(['_', '-', '.']));
    if words.any(|it| FOLDERS.contains(it)) || lower.starts_with('.') || lower.contains("/.") {
        return true;
    }
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    ENDINGS.contains(ending)
        || stem.starts_with("test_")
        || ["_test", "_tests", ".test", ".spec", "_spec", "-test"]
            .iter()
            .any(|it| stem.ends_with(it))
        || matches!(stem, "test" | "tests" | "conftest" | "changelog" | "readme" | "changes")
}

/// Returns true if a question is about tests, documentation or the settings of tools.
fn is_about_asides(question: &str) -> bool {
    const WORDS: WordList = WordList(
        "test tests tested testing spec specs fixture fixtures snapshot snapshots mock mocks benchmark benchmarks
         bench example examples sample samples css style styles stylesheet doc docs documentation documented readme changelog guide tutorial workflow workflows ci pipeline
         dependency dependencies",
    );
    let lower = question.to_lowercase();
    let mut words = lower.split(|it: char| !it.is_alphanumeric());
    words.any(|it| WORDS.contains(it))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Files in memory, by name.
    fn search(index: &Index, files: &[(&str, &str)], question: &str) -> Vec<String> {
        let list: Vec<_> = files.iter().map(|(name, text)| file(name, text)).collect();
        let read = |path: &Path| {
            let found = files.iter().find(|it| Path::new(it.0) == path);
            found.map(|it| it.1.as_bytes().to_vec())
        };
        let found = index.search(&list, &read, question, 10, &|| false);
        assert!(found.is_whole);
        let names = found.hits.iter().map(|it| files[it.file].0.to_owned());
        names.collect()
    }

    fn file(name: &str, text: &str) -> File {
        File {
            path: PathBuf::from(name),
            shown: name.to_owned(),
            modified: None,
            bytes: text.len() as u64,
        }
    }

    #[test]
    fn words_of_the_question_find_identifiers_comments_and_paths() {
        let files = [
            ("src/retry.rs", "fn backoffDelay(attempt: u32) -> Duration { base * 2 }"),
            ("src/cart.rs", "/// What the customer pays.\nfn total() {}"),
            ("src/parser/lexer.rs", "fn next(&mut self) {}"),
            ("src/other.rs", "fn nothing() {}"),
        ];
        for (question, expected) in [
            ("How long is the delay between attempts?", "src/retry.rs"),
            ("backoff_delay", "src/retry.rs"),
            ("where do customers pay", "src/cart.rs"),
            ("parsing", "src/parser/lexer.rs"),
        ] {
            assert_eq!(
                search(&Index::default(), &files, question).first().map(String::as_str),
                Some(expected),
                "{question}"
            );
        }
        assert_eq!(search(&Index::default(), &files, "zebra"), Vec::<String>::new());
        assert_eq!(search(&Index::default(), &files, ""), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_could_not_be_read_is_read_the_next_time() {
        let index = Index::default();
        let found = |text: Option<&str>| {
            let read = |_: &Path| text.map(|it| it.as_bytes().to_vec());
            let found = index.search(&[file("a.rs", "fn zebra() {}")], &read, "zebra", 10, &|| false);
            found.hits.len()
        };
        assert_eq!(found(None), 0);
        assert_eq!(found(Some("fn zebra() {}")), 1);
    }

    #[test]
    fn a_search_in_a_folder_forgets_nothing_of_the_others() {
        let index = Index::default();
        let names: Vec<String> = (0..10_400).map(|it| format!("src/{it}.rs")).collect();
        let files: Vec<File> = names.iter().map(|it| file(it, "")).collect();
        let read = |_: &Path| Some(Vec::new());
        index.survey(&files, &read, &|| false);
        index.survey(files.get(..2).unwrap(), &read, &|| false);
        assert_eq!(index.known().kept.entries.len(), names.len());
    }

    #[test]
    fn a_file_that_changes_is_found_although_there_is_no_room_for_more() {
        let index = Index {
            most_bytes: 2000,
            ..Index::default()
        };
        let names: Vec<String> = (10..30).map(|it| format!("{it}.rs")).collect();
        let read = |path: &Path| Some(format!("fn of{}() {{}}", path.display()).into_bytes());
        let survey = |changed: Option<&str>| {
            let of = |name: &String| File {
                modified: (changed == Some(name)).then_some(SystemTime::UNIX_EPOCH),
                ..file(name, "")
            };
            let files: Vec<File> = names.iter().map(of).collect();
            let entries = index.survey(&files, &read, &|| false).entries;
            let known = names.iter().zip(entries).filter(|it| it.1.is_some());
            known.map(|it| it.0.clone()).collect::<Vec<_>>()
        };
        let known = survey(None);
        assert!((3..10).contains(&known.len()), "{known:?}");
        for changed in [&known[0], &known[1], &known[0]] {
            assert_eq!(survey(Some(changed)), known, "{changed}");
        }
    }

    #[test]
    fn contents_that_no_file_has_any_more_do_not_pile_up() {
        let index = Index::default();
        for at in 0..500 {
            let text = format!("fn version_{at:03}() {{}}");
            let file = File {
                modified: Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(at)),
                ..file("a.rs", &text)
            };
            index.survey(&[file], &|_| Some(text.clone().into_bytes()), &|| false);
        }
        let known = index.known.lock().unwrap();
        assert_eq!(known.kept.entries.len(), 1);
        assert!(
            known.kept.contents.len() <= 2 + SPARE_CONTENTS,
            "{}",
            known.kept.contents.len()
        );
    }

    #[test]
    fn tests_and_documentation_stand_back_unless_asked_for() {
        let code = "fn discount() { check(discount) }";
        let files = [
            ("docs/discount.md", code),
            ("src/discount.rs", code),
            ("tests/discount.rs", code),
        ];
        assert_eq!(
            search(&Index::default(), &files, "where are discounts checked")[0],
            "src/discount.rs"
        );
        assert_eq!(
            search(&Index::default(), &files, "which tests check discounts")[0],
            "tests/discount.rs"
        );
        assert_eq!(
            search(&Index::default(), &files, "what do the docs say about discounts")[0],
            "docs/discount.md"
        );
        for (path, expected) in [
            ("src/cart.rs", false),
            ("src/testimony.rs", false),
            ("src/latest.rs", false),
            ("contest/a.py", false),
            ("tests/cart.rs", true),
            ("src/tests.rs", true),
            ("pkg/cart_test.go", true),
            ("web/cart.spec.ts", true),
            ("test_cart.py", true),
            ("test_site/cart.py", true),
            ("src/runtime-tests/cart.ts", true),
            ("src/contests/cart.ts", false),
            ("README.md", true),
            ("CHANGELOG", true),
            (".github/workflows/ci.yml", true),
            ("web/.eslintrc.js", true),
            ("pyproject.toml", true),
        ] {
            assert_eq!(is_aside(path), expected, "{path}");
        }
    }

    #[test]
    fn one_file_does_not_fill_the_answer() {
        let long: String = (0..30)
            .map(|it| format!("fn needle{it}() {{\n{}}}\n\n", "    needle();\n".repeat(30)))
            .collect();
        let files = [("a.rs", long.as_str()), ("b.rs", "fn needle() {}")];
        let found = search(&Index::default(), &files, "needle");
        assert_eq!(found.iter().filter(|it| *it == "a.rs").count(), 3);
        assert!(found.contains(&"b.rs".to_owned()));
        // Ten files come before a second chunk of one.
        let names: Vec<String> = (0..12).map(|it| format!("{it}.rs")).collect();
        let mut many: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "fn needle() {}")).collect();
        many.push(("a.rs", &long));
        let found = search(&Index::default(), &many, "needle");
        let different: std::collections::BTreeSet<_> = found.iter().collect();
        assert_eq!((found.len(), different.len()), (10, 10));
    }

    #[test]
    fn a_word_inside_of_a_name_in_the_path_counts() {
        let files = [
            ("src/httpcache.py", "class Policy:\n    pass\n"),
            ("src/pages.py", "def cache_line(page):\n    return page\n"),
            ("src/other.py", "def other():\n    pass\n"),
        ];
        let found = search(&Index::default(), &files, "How does http caching decide?");
        assert_eq!(found[0], "src/httpcache.py");
        assert!(found.contains(&"src/pages.py".to_owned()));
    }

    #[test]
    fn files_are_read_again_only_when_they_differ() {
        let index = Index::default();
        let count = AtomicUsize::new(0);
        let read = |_: &Path| {
            count.fetch_add(1, Ordering::Relaxed);
            Some(b"fn needle() {}".to_vec())
        };
        let mut files: Vec<_> = (0..20).map(|it| file(&format!("{it}.rs"), "x")).collect();
        let search = |files: &[File]| index.search(files, &read, "needle", 10, &|| false).searched;
        assert_eq!((search(&files), count.load(Ordering::Relaxed)), (20, 20));
        assert_eq!((search(&files), count.load(Ordering::Relaxed)), (20, 20));
        files[3].bytes += 1;
        files[4].modified = Some(SystemTime::UNIX_EPOCH);
        assert_eq!((search(&files), count.load(Ordering::Relaxed)), (20, 22));
        assert_eq!((search(&files[..5]), count.load(Ordering::Relaxed)), (5, 22));
    }

    #[test]
    fn a_long_look_is_stored_while_it_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::stored(&folder.path().join("cache"), folder.path());
        let path = index.path.clone().unwrap();
        let at = |it: usize| folder.path().join(format!("{it}.rs"));
        let files: Vec<_> = (0..MANY_NEW + 10)
            .map(|it| File {
                path: at(it),
                ..file(&format!("{it}.rs"), "x")
            })
            .collect();
        for file in &files {
            std::fs::write(&file.path, "x").unwrap();
        }
        // The last file is not read before something is stored.
        let read = |file: &Path| {
            let is_last = file == at(MANY_NEW + 9);
            while is_last && store::load(&path).entries.len() < MANY_NEW {
                std::thread::yield_now();
            }
            Some(b"x".to_vec())
        };
        assert!(index.survey(&files, &read, &|| false).is_whole());
    }

    #[test]
    fn what_is_broken_off_goes_on_the_next_time() {
        let index = Index::default();
        let is_over = AtomicBool::new(false);
        let count = AtomicUsize::new(0);
        let read = |_: &Path| {
            if count.fetch_add(1, Ordering::Relaxed) == 10 {
                is_over.store(true, Ordering::Relaxed);
            }
            Some(b"fn needle() {}".to_vec())
        };
        let files: Vec<_> = (0..100).map(|it| file(&format!("{it}.rs"), "x")).collect();
        let first = index.search(&files, &read, "needle", 10, &|| is_over.load(Ordering::Relaxed));
        assert!(!first.is_whole && first.searched < 20, "{}", first.searched);
        let second = index.search(&files, &read, "needle", 10, &|| false);
        assert!(second.is_whole && second.searched == 100);
        // What was cut when it was broken off was thrown away, and read again: one file of each thread.
        assert!(count.load(Ordering::Relaxed) <= 100 + THREADS);
    }

    #[test]
    fn what_is_no_text_has_no_words() {
        let minified = format!("var needle={};", "1,".repeat(20_000));
        let binary = "needle\0needle";
        let huge = "needle\n".repeat(200_000);
        let files = [
            ("a.js", minified.as_str()),
            ("b.bin", binary),
            ("c.txt", huge.as_str()),
            ("d.rs", "needle"),
        ];
        assert_eq!(search(&Index::default(), &files, "needle"), ["d.rs"]);
    }
}
