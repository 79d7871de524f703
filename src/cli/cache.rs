//! Full-text cache of all conversations: it finds those that can contain the words of a search, and holds the list of
//! conversations, so that only changed files are opened for it.
//!
//! It is a sieve and decides nothing: a conversation that it does not know, or that has changed since, is looked at, and so
//! is every one that it lets through. So it may be missing, old, damaged or out of reach, and what is found stays the same;
//! it can be thrown away at any time. Of what was said it holds no texts, only which three letters, as numbers, and which kinds
//! of documents stand in a conversation: one row for each, because a row for each document took ten times as long to make. Of
//! the list it holds titles and first words, which go when a conversation is removed.
//!
//! Measured on 8,200 conversations of 1 GB: a search takes 0.08 s of CPU with it and 1.9 s without (0.14 s and 2.5 s where
//! nothing is in memory). Learning them takes about 50 s, in the background, 20 s whenever the list is opened.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, params};
use serde_json::Value;

use crate::{
    journal::file::{Listed, Store},
    os::file,
    protocol::Document,
    transcript::{
        Transcript,
        query::{Query, facts},
    },
};

/// Version of the tables and of the text folding. A cache of another version is deleted.
const VERSION: i64 = 3;
/// Length of the indexed letter groups.
const LETTERS: usize = 3;
/// Time to wait for another program that is writing.
const PATIENCE: Duration = Duration::from_millis(100);
/// Time for which sessions are indexed in one transaction, since each commit is expensive.
const TOGETHER: Duration = Duration::from_millis(200);
/// Bits of the hash of a letter group or fact. A collision only lets a session through needlessly.
const BITS: u32 = 25;

/// An open cache database.
pub struct Cache {
    connection: Connection,
}

/// Result of a lookup in the cache.
#[derive(Debug, Default)]
pub struct Passing {
    /// By session id: false if the session cannot match. Sessions that changed since, or are unknown, are missing.
    known: HashMap<String, bool>,
}

/// A session as it was when it was indexed.
struct KnownSession {
    key: i64,
    bytes: i64,
    modified: i64,
    last_ms: i64,
}

impl Passing {
    /// Returns false if the session cannot match, true if it may; `None` if the cache does not know it.
    pub fn lets_through(&self, id: &str) -> Option<bool> {
        self.known.get(id).copied()
    }
}

impl Cache {
    /// Opens the cache in a folder, and creates it if needed. `None` if that fails; searches then work without it.
    pub fn open(folder: &Path) -> Option<Self> {
        let path = folder.join("sessions.db");
        match Self::connect(folder, &path) {
            Ok(cache) => Some(cache),
            Err(error) if is_of_others(&error) => {
                tracing::info!(%error, "conversations are searched without a cache");
                None
            }
            Err(error) => {
                tracing::info!(%error, "the cache of conversations is made anew");
                for end in ["", "-wal", "-shm"] {
                    let mut name = path.clone().into_os_string();
                    name.push(end);
                    std::fs::remove_file(PathBuf::from(name)).ok();
                }
                let made = Self::connect(folder, &path);
                made.inspect_err(|error| tracing::info!(%error, "conversations are searched without a cache"))
                    .ok()
            }
        }
    }

    fn connect(folder: &Path, path: &Path) -> anyhow::Result<Self> {
        file::private_folder(folder)?;
        // The words of the user are theirs alone.
        drop(file::append(path)?);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;")?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |it| it.get(0))?;
        if version != VERSION {
            anyhow::ensure!(version == 0, "it is of version {version}");
            connection.execute_batch("BEGIN IMMEDIATE")?;
            // Another program may have made it meanwhile.
            let version: i64 = connection.query_row("PRAGMA user_version", [], |it| it.get(0))?;
            if version != 0 {
                connection.execute_batch("ROLLBACK")?;
                anyhow::ensure!(version == VERSION, "it is of version {version}");
                return Ok(Self { connection });
            }
            connection.execute_batch(&format!(
                "CREATE TABLE listed (id TEXT PRIMARY KEY, listed TEXT NOT NULL) WITHOUT ROWID;
                 CREATE TABLE session (key INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, bytes INTEGER NOT NULL,
                     changed INTEGER NOT NULL, last_ms INTEGER NOT NULL);
                 CREATE VIRTUAL TABLE said USING fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
                 PRAGMA user_version = {VERSION};
                 COMMIT;"
            ))?;
        }
        Ok(Self { connection })
    }

    /// Returns all sessions, the newest first. Only files that changed since the last call are opened.
    pub fn list(&mut self, store: &Store) -> io::Result<Vec<Listed>> {
        let known = self.listed().unwrap_or_else(|error| {
            tracing::info!(%error, "the list of conversations is made anew");
            HashMap::new()
        });
        let listed = store.list_anew(&known)?;
        if let Err(error) = self.keep(&known, &listed) {
            tracing::info!(%error, "the list of conversations is not cached");
        }
        Ok(listed)
    }

    fn listed(&self) -> rusqlite::Result<HashMap<String, Listed>> {
        let mut rows = self.connection.prepare("SELECT id, listed FROM listed")?;
        let rows = rows.query_map([], |it| Ok((it.get::<_, String>(0)?, it.get::<_, String>(1)?)))?;
        let mut known = HashMap::new();
        for row in rows {
            let (id, listed) = row?;
            known.extend(serde_json::from_str(&listed).ok().map(|it| (id, it)));
        }
        Ok(known)
    }

    fn keep(&mut self, known: &HashMap<String, Listed>, listed: &[Listed]) -> rusqlite::Result<()> {
        let is_kept = |it: &&Listed| {
            let old = known.get(&it.session.id);
            old.is_none_or(|old| (old.bytes, old.modified) != (it.bytes, it.modified))
        };
        let new: Vec<&Listed> = listed.iter().filter(is_kept).collect();
        let there: HashSet<&str> = listed.iter().map(|it| it.session.id.as_str()).collect();
        let gone: Vec<&String> = known.keys().filter(|it| !there.contains(it.as_str())).collect();
        if new.is_empty() && gone.is_empty() {
            return Ok(());
        }
        let transaction = self.connection.transaction()?;
        {
            let mut put = transaction.prepare("INSERT OR REPLACE INTO listed (id, listed) VALUES (?1, ?2)")?;
            for it in new {
                put.execute(params![it.session.id, serde_json::to_string(it).unwrap_or_default()])?;
            }
            let mut forget = transaction.prepare("DELETE FROM listed WHERE id = ?1")?;
            for id in gone {
                forget.execute([id])?;
            }
        }
        transaction.commit()
    }

    /// Removes all data of a session, also from free parts of the file.
    pub fn forget(&mut self, id: &str) {
        let forgotten = (|| {
            let transaction = self.connection.transaction()?;
            transaction.execute("DELETE FROM listed WHERE id = ?1", [id])?;
            let key = transaction
                .query_row("SELECT key FROM session WHERE id = ?1", [id], |it| it.get(0))
                .optional()?;
            if let Some(key) = key {
                forget(&transaction, key)?;
            }
            transaction.commit()?;
            // The write-ahead log keeps removed data until it is truncated.
            self.connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })();
        if let Err(error) = forgotten {
            tracing::info!(%error, "the cache forgets it with the next list");
        }
    }

    /// Looks up which of these sessions may match a query.
    pub fn passing(&self, query: &Query, listed: &[Listed]) -> Passing {
        let words = query.words().flat_map(|it| trigrams(&folded(it)));
        let wanted: BTreeSet<String> = words.chain(query.facts()).map(|it| token(number(&it))).collect();
        self.look(&wanted, query.since(), listed).unwrap_or_else(|error| {
            tracing::info!(%error, "the cache of conversations cannot be read");
            Passing::default()
        })
    }

    fn look(&self, wanted: &BTreeSet<String>, since: Option<u64>, listed: &[Listed]) -> rusqlite::Result<Passing> {
        let known = self.known()?;
        let passing: Option<HashSet<i64>> = if wanted.is_empty() {
            None
        } else {
            let terms: Vec<String> = wanted.iter().map(|it| format!("\"{it}\"")).collect();
            let mut rows = self.connection.prepare("SELECT rowid FROM said WHERE said MATCH ?1")?;
            let found = rows.query_map([terms.join(" AND ")], |it| it.get(0))?;
            Some(found.collect::<rusqlite::Result<_>>()?)
        };
        let mut answer = Passing::default();
        for it in listed {
            if let Some(known) = known.get(&it.session.id).filter(|known| known.is_of(it)) {
                let holds = passing.as_ref().is_none_or(|it| it.contains(&known.key));
                let is_late = since.is_none_or(|it| known.last_ms >= it as i64);
                answer.known.insert(it.session.id.clone(), holds && is_late);
            }
        }
        Ok(answer)
    }

    /// Returns the indexed sessions, by id.
    fn known(&self) -> rusqlite::Result<HashMap<String, KnownSession>> {
        let mut rows = self
            .connection
            .prepare("SELECT id, key, bytes, changed, last_ms FROM session")?;
        let known = rows.query_map([], |it| {
            let known = KnownSession {
                key: it.get(1)?,
                bytes: it.get(2)?,
                modified: it.get(3)?,
                last_ms: it.get(4)?,
            };
            Ok((it.get(0)?, known))
        })?;
        known.collect()
    }

    /// Indexes new and changed sessions, the newest first, for about `patience`, and removes missing ones.
    pub fn update(&mut self, store: &Store, listed: &[Listed], patience: Duration) {
        if let Err(error) = self.learn(store, listed, patience) {
            tracing::info!(%error, "the cache of conversations is not up to date");
        }
    }

    fn learn(&mut self, store: &Store, listed: &[Listed], patience: Duration) -> rusqlite::Result<()> {
        let began = Instant::now();
        let known = self.known()?;
        let there: HashSet<&str> = listed.iter().map(|it| it.session.id.as_str()).collect();
        let gone: Vec<i64> = known
            .iter()
            .filter(|(id, _)| !there.contains(id.as_str()))
            .map(|(_, known)| known.key)
            .collect();
        if !gone.is_empty() {
            let transaction = self.connection.transaction()?;
            for key in gone {
                forget(&transaction, key)?;
            }
            transaction.commit()?;
        }
        let is_new = |it: &&Listed| known.get(&it.session.id).is_none_or(|known| !known.is_of(it));
        let mut new = listed.iter().filter(is_new).peekable();
        let mut numbers = Numbers::new();
        while new.peek().is_some() && began.elapsed() < patience {
            let transaction = self.connection.transaction()?;
            let together = Instant::now();
            while together.elapsed() < TOGETHER
                && began.elapsed() < patience
                && let Some(it) = new.next()
            {
                if let Some(old) = known.get(&it.session.id) {
                    forget(&transaction, old.key)?;
                }
                take_in(&transaction, store, it, &mut numbers)?;
            }
            transaction.commit()?;
        }
        Ok(())
    }
}

impl KnownSession {
    fn is_of(&self, it: &Listed) -> bool {
        (self.bytes, self.modified) == (it.bytes as i64, it.modified as i64)
    }
}

fn forget(transaction: &Transaction<'_>, key: i64) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM said WHERE rowid = ?1", [key])?;
    transaction.execute("DELETE FROM session WHERE key = ?1", [key])?;
    Ok(())
}

/// Indexes a session. One that cannot be read is left out, so every search looks at it.
fn take_in(transaction: &Transaction<'_>, store: &Store, it: &Listed, numbers: &mut Numbers) -> rusqlite::Result<()> {
    let Ok(stored) = store.read(&it.session.id) else {
        return Ok(());
    };
    let mut transcript = Transcript::default();
    for entry in stored.closed() {
        transcript.apply(&entry);
    }
    let mut last_ms = 0;
    for exchange in transcript.all() {
        last_ms = last_ms.max(exchange.at_ms).max(exchange.last_ms);
        if let Some(message) = &exchange.message {
            numbers.take(&message.content);
        }
        for document in &exchange.response.documents {
            numbers.take_document(document);
        }
    }
    let mut put = transaction.prepare("INSERT INTO session (id, bytes, changed, last_ms) VALUES (?1, ?2, ?3, ?4)")?;
    put.execute(params![
        it.session.id,
        it.bytes as i64,
        it.modified as i64,
        last_ms as i64
    ])?;
    let mut said = transaction.prepare("INSERT INTO said (rowid, text) VALUES (?1, ?2)")?;
    said.execute(params![transaction.last_insert_rowid(), numbers.give()])?;
    Ok(())
}

/// Set of hashes of a session's letter groups and facts.
struct Numbers {
    seen: Vec<u64>,
    /// In the order of first occurrence.
    all: Vec<u32>,
}

impl Numbers {
    fn new() -> Self {
        Self {
            seen: vec![0; 1 << (BITS - 6)],
            all: Vec::new(),
        }
    }

    fn put(&mut self, number: u32) {
        let bit = 1 << (number & 63);
        if let Some(word) = self.seen.get_mut((number >> 6) as usize)
            && *word & bit == 0
        {
            *word |= bit;
            self.all.push(number);
        }
    }

    /// Adds the letter groups of a text.
    fn take(&mut self, text: &str) {
        let mut letters = ['\0'; LETTERS];
        let mut count = 0;
        for letter in plain(text) {
            letters.rotate_left(1);
            letters[LETTERS - 1] = letter;
            count += 1;
            if count >= LETTERS {
                self.put(number_of(letters.iter().copied()));
            }
        }
    }

    /// Adds the texts and facts of a document.
    fn take_document(&mut self, document: &Document) {
        fn gather(numbers: &mut Numbers, value: &Value) {
            match value {
                Value::String(text) => numbers.take(text),
                Value::Array(items) => items.iter().for_each(|it| gather(numbers, it)),
                Value::Object(members) => members.values().for_each(|it| gather(numbers, it)),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        self.take(document.content.as_deref().unwrap_or_default());
        document.metadata.values().for_each(|it| gather(self, it));
        for it in facts(document) {
            self.put(number(&it));
        }
    }

    /// Returns all hashes as words, and clears the set.
    fn give(&mut self) -> String {
        let mut words = String::with_capacity(self.all.len() * 6);
        for number in self.all.drain(..) {
            if let Some(word) = self.seen.get_mut((number >> 6) as usize) {
                *word = 0;
            }
            words.push_str(&token(number));
            words.push(' ');
        }
        words
    }
}

/// FNV-1a hash, the same in every build and version.
fn number_of(letters: impl Iterator<Item = char>) -> u32 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for letter in letters {
        for byte in (letter as u32).to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    ((hash ^ (hash >> BITS) ^ (hash >> (2 * BITS))) & ((1 << BITS) - 1)) as u32
}

fn number(text: &str) -> u32 {
    number_of(text.chars())
}

/// Returns a hash as a word of base-32 digits.
fn token(number: u32) -> String {
    const SIGNS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let signs = (0..BITS.div_ceil(5)).map(|it| SIGNS[(number >> (5 * it) & 31) as usize] as char);
    signs.collect()
}

/// Returns true if the database is locked or unavailable, and must not be deleted.
fn is_of_others(error: &anyhow::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, PermissionDenied, ReadOnly};
    let code = error
        .downcast_ref::<rusqlite::Error>()
        .and_then(rusqlite::Error::sqlite_error_code);
    matches!(
        code,
        Some(CannotOpen | DatabaseBusy | DatabaseLocked | DiskFull | PermissionDenied | ReadOnly)
    )
}

/// Folds case as a query does, or more coarsely: letters that a query takes for equal are equal here. Goes through
/// upper case because several small letters share one (`μ` and the sign `µ`, `β` and `ϐ`).
fn plain(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(|it| {
        let ascii = it.is_ascii().then(|| it.to_ascii_lowercase());
        let other = (!it.is_ascii()).then(|| {
            let big = it.to_lowercase().flat_map(char::to_uppercase);
            big.flat_map(char::to_lowercase)
        });
        ascii.into_iter().chain(other.into_iter().flatten())
    })
}

fn folded(text: &str) -> String {
    plain(text).collect()
}

/// Returns all groups of three neighbouring letters.
fn trigrams(word: &str) -> BTreeSet<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.windows(LETTERS).map(|it| it.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        journal::{Log, file::Session},
        protocol::{Event, Message},
        transcript::query::Query,
    };

    /// A folder with a session for each text.
    fn store(folder: &Path, texts: &[&str]) -> Store {
        let store = Store::new(folder.join("sessions"));
        for (nth, text) in texts.iter().enumerate() {
            let session = Session {
                id: format!("s-{nth}"),
                ..Session::fresh("/w", 1)
            };
            let log = Log::new();
            let recorder = store.record(session, &log).expect("a thread");
            log.append(1, Event::UserMessage(Message::user(*text)));
            recorder.finish().expect("it is stored");
        }
        store
    }

    fn ids(passing: &Passing, listed: &[Listed]) -> Vec<String> {
        let mut ids: Vec<String> = listed
            .iter()
            .map(|it| it.session.id.clone())
            .filter(|it| passing.lets_through(it) == Some(true))
            .collect();
        ids.sort();
        ids
    }

    fn query(text: &str) -> Query {
        Query::parse(text, 1 << 40).expect("a query")
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn only_what_may_hold_the_words_passes() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(
            folder.path(),
            &["Cart::total in ÄRGER", "a discount code", "total \"quoted\" 漢字漢字"],
        );
        let listed = store.list().expect("listed");
        let cache_folder = folder.path().join("cache");
        let mut cache = Cache::open(&cache_folder).expect("a cache");
        assert_eq!(
            cache.passing(&query("total"), &listed).known.len(),
            0,
            "nothing is known yet"
        );
        cache.update(&store, &listed, LONG);
        for (words, want) in [
            ("TOTAL", vec!["s-0", "s-2"]),
            ("total cart", vec!["s-0"]),
            ("ärger", vec!["s-0"]),
            ("iscoun", vec!["s-1"]),
            ("漢字漢", vec!["s-2"]),
            ("total since:2d", vec![]),
            ("nowhere", vec![]),
            // Too short to be looked up.
            ("to", vec!["s-0", "s-1", "s-2"]),
            // There are messages only.
            ("type:edit", vec![]),
            ("exit!=0", vec![]),
            ("tool:grep", vec![]),
        ] {
            assert_eq!(ids(&cache.passing(&query(words), &listed), &listed), want, "{words:?}");
        }
        assert_eq!(cache.list(&store).expect("listed"), listed);
        assert_eq!(cache.list(&store).expect("listed"), listed, "as it is remembered");
        // What has changed since is not known, and what is gone is forgotten.
        fs::remove_file(store.path_of("s-1")).expect("removed");
        let resumed = store.resume("s-2", 2).expect("it is there");
        resumed.log.append(2, Event::UserMessage(Message::user("discount")));
        resumed.recorder.finish().expect("it is stored");
        let listed = store.list().expect("listed");
        assert_eq!(cache.list(&store).expect("listed"), listed);
        assert_eq!(cache.passing(&query("total"), &listed).lets_through("s-2"), None);
        cache.update(&store, &listed, LONG);
        assert_eq!(ids(&cache.passing(&query("discount"), &listed), &listed), ["s-2"]);
        assert_eq!(cache.known().expect("read").len(), 2);
        // Another program reads what this one wrote.
        drop(cache);
        let cache = Cache::open(&cache_folder).expect("a cache");
        assert_eq!(ids(&cache.passing(&query("discount"), &listed), &listed), ["s-2"]);
    }

    #[test]
    fn nothing_is_left_of_what_was_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path().join("sessions"));
        let log = crate::journal::Log::new();
        let recorder = store
            .record(crate::journal::file::Session::fresh("/".to_owned(), 1), &log)
            .expect("a thread");
        log.append(1, Event::UserMessage(Message::user("the parrot is no more")));
        recorder.finish().expect("it is stored");
        let caches = folder.path().join("cache");
        let mut cache = Cache::open(&caches).expect("it can be made");
        let listed = cache.list(&store).expect("listed");
        cache.update(&store, &listed, Duration::from_secs(9));
        let holds = || {
            let files = std::fs::read_dir(&caches).expect("it is there");
            files.flatten().any(|it| {
                let bytes = std::fs::read(it.path()).expect("it can be read");
                bytes.windows(6).any(|it| it == b"parrot")
            })
        };
        assert!(holds());
        let id = &listed[0].session.id;
        store.remove(id).expect("removed");
        cache.forget(id);
        assert!(!holds());
        assert_eq!(cache.list(&store).expect("listed"), []);
    }

    #[test]
    fn what_is_damaged_is_made_anew_and_what_cannot_be_made_is_done_without() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path(), &["total"]);
        let listed = store.list().expect("listed");
        let cache_folder = folder.path().join("cache");
        drop(Cache::open(&cache_folder).expect("a cache"));
        fs::write(cache_folder.join("sessions.db"), "this is no database").expect("written");
        let mut cache = Cache::open(&cache_folder).expect("made anew");
        cache.update(&store, &listed, LONG);
        assert_eq!(ids(&cache.passing(&query("total"), &listed), &listed), ["s-0"]);
        drop(cache);
        fs::write(folder.path().join("file"), "").expect("written");
        assert!(Cache::open(&folder.path().join("file")).is_none());
        // Another version of the program.
        let cache = Cache::open(&cache_folder).expect("a cache");
        cache.connection.execute_batch("PRAGMA user_version = 99").expect("set");
        drop(cache);
        let cache = Cache::open(&cache_folder).expect("made anew");
        assert!(cache.known().expect("read").is_empty());
    }

    #[test]
    fn letters_that_a_query_takes_for_the_same_are_the_same_here() {
        let has_cases = |it: &char| !it.to_lowercase().eq([*it]) || !it.to_uppercase().eq([*it]);
        let all: Vec<char> = ('\0'..=char::MAX).filter(has_cases).collect();
        let text: String = all.iter().collect();
        let mut apart = Vec::new();
        for letter in all {
            let query = regex::Regex::new(&format!("(?i){letter}")).expect("a letter");
            for found in query.find_iter(&text) {
                if folded(found.as_str()) != folded(&letter.to_string()) {
                    apart.push((
                        letter.escape_unicode().to_string(),
                        found.as_str().escape_unicode().to_string(),
                    ));
                }
            }
        }
        assert_eq!(apart, []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Whatever a query finds, the cache lets through.
        #[test]
        fn nothing_that_would_be_found_is_held_back(
            texts in prop::collection::vec("[a-cA-CäÄßſςΣ \"*%_\\-\u{0}漢]{0,24}", 1..4),
            word in "[a-cA-CäÄsSσß\"*%_\\-漢]{1,5}",
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let store = store(folder.path(), &texts.iter().map(String::as_str).collect::<Vec<_>>());
            let listed = store.list().expect("listed");
            let mut cache = Cache::open(&folder.path().join("cache")).expect("a cache");
            cache.update(&store, &listed, LONG);
            let quoted = format!("\"{}\"", word.replace('"', ""));
            prop_assume!(quoted.len() > 2);
            let query = Query::parse(&quoted, 0).expect("a word");
            let passing = cache.passing(&query, &listed);
            for (nth, text) in texts.iter().enumerate() {
                if query.find(text).is_some() {
                    prop_assert_eq!(passing.lets_through(&format!("s-{nth}")), Some(true), "{:?} in {:?}", word, text);
                }
            }
        }
    }
}
