//! What was said in all conversations, as a full-text cache: which of them can hold the words that are looked for.
//!
//! It is a sieve and decides nothing: a conversation that it does not know, or that has changed since, is looked at, and so
//! is every one that it lets through. So it may be missing, old, damaged or out of reach, and what is found stays the same;
//! it can be thrown away at any time. It holds no texts, only which three letters stand in which document.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, Transaction, params};
use serde_json::Value;

use crate::{
    export::Whole,
    journal::file::{Listed, Store},
    os::file,
    protocol::Document,
};

/// Grows with the shape of the tables and with how texts are folded: another one is thrown away.
const VERSION: i64 = 1;
/// Letters that are looked up together.
const LETTERS: usize = 3;
/// Another program may be writing: nobody waits long for it.
const PATIENCE: Duration = Duration::from_millis(100);

pub struct Cache {
    connection: Connection,
}

/// What the cache says of conversations.
#[derive(Debug, Default)]
pub struct Passing {
    /// Those that it knows as they are now, and whether they may hold the words.
    known: HashMap<String, bool>,
}

impl Passing {
    /// `None`: it does not know.
    pub fn lets_through(&self, id: &str) -> Option<bool> {
        self.known.get(id).copied()
    }
}

impl Cache {
    /// The cache in a folder, which is made. `None`: there is none, and that is no harm.
    pub fn open(folder: &Path) -> Option<Self> {
        let path = folder.join("sessions.db");
        match Self::connect(folder, &path) {
            Ok(cache) => Some(cache),
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
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |it| it.get(0))?;
        if version != VERSION {
            anyhow::ensure!(version == 0, "it is of version {version}");
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE;
                 CREATE TABLE session (key INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, bytes INTEGER NOT NULL, changed INTEGER NOT NULL);
                 CREATE TABLE place (row INTEGER PRIMARY KEY, session INTEGER NOT NULL);
                 CREATE INDEX place_session ON place (session);
                 CREATE VIRTUAL TABLE said USING fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1');
                 PRAGMA user_version = {VERSION};
                 COMMIT;"
            ))?;
        }
        Ok(Self { connection })
    }

    /// Which of these may hold all words in one document or message.
    pub fn passing<'a>(&self, words: impl Iterator<Item = &'a str>, listed: &[Listed]) -> Passing {
        let wanted: BTreeSet<String> = words.flat_map(|it| trigrams(&folded(it))).collect();
        self.look(&wanted, listed).unwrap_or_else(|error| {
            tracing::info!(%error, "the cache of conversations cannot be read");
            Passing::default()
        })
    }

    fn look(&self, wanted: &BTreeSet<String>, listed: &[Listed]) -> rusqlite::Result<Passing> {
        let known = self.known()?;
        let passing: Option<HashSet<i64>> = if wanted.is_empty() {
            None
        } else {
            let terms: Vec<String> = wanted
                .iter()
                .map(|it| format!("\"{}\"", it.replace('"', "\"\"")))
                .collect();
            let mut rows = self.connection.prepare(
                "SELECT DISTINCT place.session FROM said JOIN place ON place.row = said.rowid WHERE said MATCH ?1",
            )?;
            let found = rows.query_map([terms.join(" AND ")], |it| it.get(0))?;
            Some(found.collect::<rusqlite::Result<_>>()?)
        };
        let mut answer = Passing::default();
        for it in listed {
            if let Some((key, ..)) = known.get(&it.session.id).filter(|known| is_fresh(known, it)) {
                let lets = passing.as_ref().is_none_or(|it| it.contains(key));
                answer.known.insert(it.session.id.clone(), lets);
            }
        }
        Ok(answer)
    }

    /// What is known, by id: the key, the size and the time of the file that was read.
    fn known(&self) -> rusqlite::Result<HashMap<String, (i64, i64, i64)>> {
        let mut rows = self.connection.prepare("SELECT id, key, bytes, changed FROM session")?;
        let known = rows.query_map([], |it| Ok((it.get(0)?, (it.get(1)?, it.get(2)?, it.get(3)?))))?;
        known.collect()
    }

    /// Reads what is new or has changed, the newest first, for about so long, and forgets what is gone.
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
            .map(|(_, (key, ..))| *key)
            .collect();
        if !gone.is_empty() {
            let transaction = self.connection.transaction()?;
            for key in gone {
                forget(&transaction, key)?;
            }
            transaction.commit()?;
        }
        for it in listed {
            let old = known.get(&it.session.id);
            if old.is_some_and(|old| is_fresh(old, it)) {
                continue;
            }
            if began.elapsed() >= patience {
                break;
            }
            let Ok(stored) = store.read(&it.session.id) else {
                continue;
            };
            let whole = Whole::new(stored.session.clone(), stored.closed());
            let transaction = self.connection.transaction()?;
            if let Some((key, ..)) = old {
                forget(&transaction, *key)?;
            }
            transaction.execute(
                "INSERT INTO session (id, bytes, changed) VALUES (?1, ?2, ?3)",
                params![it.session.id, it.bytes as i64, it.changed as i64],
            )?;
            let key = transaction.last_insert_rowid();
            let mut place = transaction.prepare("INSERT INTO place (session) VALUES (?1)")?;
            let mut said = transaction.prepare("INSERT INTO said (rowid, text) VALUES (?1, ?2)")?;
            for text in texts(&whole) {
                place.execute([key])?;
                said.execute(params![transaction.last_insert_rowid(), text])?;
            }
            drop((place, said));
            transaction.commit()?;
        }
        Ok(())
    }
}

fn is_fresh((_, bytes, changed): &(i64, i64, i64), it: &Listed) -> bool {
    *bytes == it.bytes as i64 && *changed == it.changed as i64
}

fn forget(transaction: &Transaction<'_>, key: i64) -> rusqlite::Result<()> {
    transaction.execute(
        "DELETE FROM said WHERE rowid IN (SELECT row FROM place WHERE session = ?1)",
        [key],
    )?;
    transaction.execute("DELETE FROM place WHERE session = ?1", [key])?;
    transaction.execute("DELETE FROM session WHERE key = ?1", [key])?;
    Ok(())
}

/// What a query looks at, folded: each message and each document, on whatever branch.
fn texts(whole: &Whole) -> impl Iterator<Item = String> {
    whole.transcript.all().into_iter().flat_map(|exchange| {
        let message = exchange.message.as_ref().map(|it| folded(&it.content));
        let documents = exchange.response.documents.iter().map(text);
        message.into_iter().chain(documents)
    })
}

fn text(document: &Document) -> String {
    fn gather(value: &Value, all: &mut String) {
        match value {
            Value::String(text) => {
                all.push('\n');
                all.push_str(text);
            }
            Value::Array(items) => items.iter().for_each(|it| gather(it, all)),
            Value::Object(members) => members.values().for_each(|it| gather(it, all)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut all = document.content.clone().unwrap_or_default();
    document.metadata.values().for_each(|it| gather(it, &mut all));
    folded(&all)
}

/// As a query compares letters: big ones are small, and the odd ones are plain.
fn folded(text: &str) -> String {
    let small = text.chars().flat_map(char::to_lowercase);
    let plain = small.map(|it| match it {
        'ς' => 'σ',
        'ſ' => 's',
        // The end of a text, to SQLite.
        '\0' => ' ',
        it => it,
    });
    plain.collect()
}

/// All neighbours of three letters.
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
            recorder.finish();
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
            cache.passing(["total"].into_iter(), &listed).known.len(),
            0,
            "nothing is known yet"
        );
        cache.update(&store, &listed, LONG);
        for (words, want) in [
            (vec!["TOTAL"], vec!["s-0", "s-2"]),
            (vec!["total", "cart"], vec!["s-0"]),
            (vec!["ärger"], vec!["s-0"]),
            (vec!["iscoun"], vec!["s-1"]),
            (vec!["漢字漢"], vec!["s-2"]),
            (vec!["\"quo"], vec!["s-2"]),
            (vec!["nowhere"], vec![]),
            // Too short to be looked up.
            (vec!["to"], vec!["s-0", "s-1", "s-2"]),
        ] {
            assert_eq!(
                ids(&cache.passing(words.iter().copied(), &listed), &listed),
                want,
                "{words:?}"
            );
        }
        // What has changed since is not known, and what is gone is forgotten.
        fs::remove_file(store.path_of("s-1")).expect("removed");
        let resumed = store.resume("s-2", 2).expect("it is there");
        resumed.log.append(2, Event::UserMessage(Message::user("discount")));
        resumed.recorder.finish();
        let listed = store.list().expect("listed");
        assert_eq!(cache.passing(["total"].into_iter(), &listed).lets_through("s-2"), None);
        cache.update(&store, &listed, LONG);
        assert_eq!(ids(&cache.passing(["discount"].into_iter(), &listed), &listed), ["s-2"]);
        assert_eq!(cache.known().expect("read").len(), 2);
        // Another program reads what this one wrote.
        drop(cache);
        let cache = Cache::open(&cache_folder).expect("a cache");
        assert_eq!(ids(&cache.passing(["discount"].into_iter(), &listed), &listed), ["s-2"]);
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
        assert_eq!(ids(&cache.passing(["total"].into_iter(), &listed), &listed), ["s-0"]);
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
            let passing = cache.passing(query.words(), &listed);
            for (nth, text) in texts.iter().enumerate() {
                if query.find(text).is_some() {
                    prop_assert_eq!(passing.lets_through(&format!("s-{nth}")), Some(true), "{:?} in {:?}", word, text);
                }
            }
        }
    }
}
