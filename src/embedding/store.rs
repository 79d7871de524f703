//! The file of vectors: by model and hash of the text, shared by all workspaces, branches and programs of a person.
//!
//! It is a cache: it may be missing, old, damaged or out of reach, and is made anew then. SQLite keeps it whole when a program is
//! killed, and readable while another one writes.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::vector::Vector;
use crate::{index::TextHash, os::file};

/// Version of the tables. A file of another version is deleted.
const VERSION: i64 = 1;
/// The file in the cache folder.
const NAME: &str = "vectors.db";
/// Time to wait for another program that writes.
const PATIENCE: Duration = Duration::from_secs(2);
/// Days after which a vector that is used again is marked as used.
const MARKED_AFTER: i64 = 7;
/// Share of the limit that is kept when there are too many.
const KEPT: f64 = 0.8;

/// The open file, for one model.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    model: i64,
    dims: Cell<Option<usize>>,
    /// Bytes.
    limit: u64,
}

/// The vectors of a model in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub model: String,
    pub dims: usize,
    pub vectors: u64,
}

/// Error of the file.
pub type StoreError = anyhow::Error;

impl Store {
    /// Opens the file for the model `id`, and creates it if needed. `limit` is in bytes.
    pub fn open(folder: &Path, id: &str, limit: u64) -> Result<Self, StoreError> {
        let connection = opened(folder)?;
        connection.execute("INSERT OR IGNORE INTO model (id, dims) VALUES (?1, 0)", [id])?;
        let model = connection.query_row("SELECT key FROM model WHERE id = ?1", [id], |it| it.get(0))?;
        Ok(Self {
            connection,
            model,
            dims: Cell::new(None),
            limit,
        })
    }

    /// A number that changes when any program has written.
    pub fn version(&self) -> i64 {
        let version = self.connection.query_row("PRAGMA data_version", [], |it| it.get(0));
        version.unwrap_or_default()
    }

    /// Calls `found` with each vector that is stored, of those asked for. A damaged one is none.
    pub fn read(
        &self,
        hashes: impl Iterator<Item = TextHash>,
        mut found: impl FnMut(TextHash, Vector),
    ) -> Result<(), StoreError> {
        let Some(dims) = self.dims.get().or_else(|| stored_dims(&self.connection, self.model)) else {
            return Ok(());
        };
        self.dims.set(Some(dims));
        let today = today();
        let mut old = Vec::new();
        let reading = self.connection.unchecked_transaction()?;
        let mut select = reading.prepare("SELECT vector, used FROM vector WHERE model = ?1 AND hash = ?2")?;
        for hash in hashes {
            let row: Option<(Option<Vector>, i64)> = select
                .query_row(params![self.model, hash.0], |it| {
                    let bytes = it.get_ref(0)?.as_blob().unwrap_or_default();
                    Ok((Vector::read(bytes, dims), it.get(1)?))
                })
                .optional()?;
            if let Some((Some(vector), used)) = row {
                if used + MARKED_AFTER < today {
                    old.push(hash);
                }
                found(hash, vector);
            }
        }
        drop(select);
        reading.finish()?;
        // Who may only read keeps the old marks.
        if let Err(error) = self.mark(&old, today) {
            tracing::debug!(%error, "vectors in use are not marked");
        }
        Ok(())
    }

    fn mark(&self, hashes: &[TextHash], today: i64) -> Result<(), StoreError> {
        if hashes.is_empty() {
            return Ok(());
        }
        let writing = self.connection.unchecked_transaction()?;
        let mut update = writing.prepare("UPDATE vector SET used = ?3 WHERE model = ?1 AND hash = ?2")?;
        for hash in hashes {
            update.execute(params![self.model, hash.0, today])?;
        }
        drop(update);
        Ok(writing.commit()?)
    }

    /// Stores vectors, all or none. When the file is above its limit, those that were not used for the longest time go.
    pub fn write(&self, vectors: &[(TextHash, Vector)]) -> Result<(), StoreError> {
        let Some((_, first)) = vectors.first() else {
            return Ok(());
        };
        let dims = first.values.len();
        let today = today();
        let writing = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        // Another program may have written the first ones.
        let before = stored_dims(&writing, self.model);
        if before != Some(dims) {
            if before.is_some() {
                // A model of the same name that has changed: nothing of the old one fits.
                writing.execute("DELETE FROM vector WHERE model = ?1", [self.model])?;
            }
            writing.execute(
                "UPDATE model SET dims = ?2 WHERE key = ?1",
                params![self.model, i64::try_from(dims)?],
            )?;
        }
        let mut insert =
            writing.prepare("INSERT OR REPLACE INTO vector (model, hash, vector, used) VALUES (?1, ?2, ?3, ?4)")?;
        for (hash, vector) in vectors.iter().filter(|it| it.1.values.len() == dims) {
            insert.execute(params![self.model, hash.0, vector.bytes(), today])?;
        }
        drop(insert);
        writing.commit()?;
        self.dims.set(Some(dims));
        self.shrink()
    }

    fn shrink(&self) -> Result<(), StoreError> {
        let bytes = self.bytes()?;
        if bytes <= self.limit {
            return Ok(());
        }
        let count: i64 = self
            .connection
            .query_row("SELECT count(*) FROM vector", [], |it| it.get(0))?;
        let kept = count as f64 * self.limit as f64 * KEPT / bytes as f64;
        let gone = count - kept as i64;
        self.connection.execute(
            "DELETE FROM vector WHERE (model, hash) IN (SELECT model, hash FROM vector ORDER BY used LIMIT ?1)",
            [gone],
        )?;
        self.connection.execute_batch("PRAGMA incremental_vacuum")?;
        Ok(())
    }

    /// Size of the file, in bytes.
    fn bytes(&self) -> Result<u64, StoreError> {
        let number = |name: &str| -> Result<u64, StoreError> {
            let found: i64 = self
                .connection
                .query_row(&format!("PRAGMA {name}"), [], |it| it.get(0))?;
            Ok(u64::try_from(found)?)
        };
        Ok((number("page_count")? - number("freelist_count")?) * number("page_size")?)
    }
}

/// Dimensions of a model's stored vectors; `None` while there are none.
fn stored_dims(connection: &Connection, model: i64) -> Option<usize> {
    let found = connection.query_row("SELECT dims FROM model WHERE key = ?1", [model], |it| {
        it.get::<_, i64>(0)
    });
    found.ok().and_then(|it| usize::try_from(it).ok()).filter(|it| *it > 0)
}

/// The models that have vectors in the file, and its size in bytes. `None` if there is no file.
pub fn stored(folder: &Path) -> Result<Option<(Vec<Stored>, u64)>, StoreError> {
    let path = folder.join(NAME);
    if !path.exists() {
        return Ok(None);
    }
    let connection = opened(folder)?;
    let mut select = connection
        .prepare("SELECT id, dims, (SELECT count(*) FROM vector WHERE model = key) FROM model ORDER BY id")?;
    let rows = select.query_map([], |it| {
        Ok(Stored {
            model: it.get(0)?,
            dims: usize::try_from(it.get::<_, i64>(1)?).unwrap_or_default(),
            vectors: u64::try_from(it.get::<_, i64>(2)?).unwrap_or_default(),
        })
    })?;
    let models: Result<Vec<_>, _> = rows.collect();
    let bytes = std::fs::metadata(&path).map_or(0, |it| it.len());
    Ok(Some((models?.into_iter().filter(|it| it.vectors > 0).collect(), bytes)))
}

/// Deletes all vectors. Returns the bytes that the file had; `None` if there was none.
///
/// The file stays, because other programs may have it open.
pub fn clear(folder: &Path) -> Result<Option<u64>, StoreError> {
    let Some(bytes) = std::fs::metadata(folder.join(NAME)).ok().map(|it| it.len()) else {
        return Ok(None);
    };
    let connection = opened(folder)?;
    connection.execute_batch("DELETE FROM vector; PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")?;
    Ok(Some(bytes))
}

/// Removes a file that is damaged, so that the next one who opens it makes it anew.
pub fn discard(folder: &Path) -> Result<(), StoreError> {
    for name in names(folder) {
        file::remove(&name)?;
    }
    Ok(())
}

/// True if an error says that the file is damaged.
pub fn is_damage(error: &StoreError) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let code = error
        .downcast_ref::<rusqlite::Error>()
        .and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(DatabaseCorrupt | NotADatabase))
}

fn names(folder: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| folder.join(format!("{NAME}{end}")))
}

fn opened(folder: &Path) -> Result<Connection, StoreError> {
    match connect(folder) {
        Ok(connection) => Ok(connection),
        Err(error) if is_of_others(&error) => Err(error),
        Err(error) => {
            tracing::info!(%error, "the file of vectors is made anew");
            discard(folder)?;
            connect(folder)
        }
    }
}

/// True if the file may be sound: somebody else holds it, or it cannot be reached.
fn is_of_others(error: &StoreError) -> bool {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure,
    };
    match error.downcast_ref::<rusqlite::Error>() {
        Some(rusqlite::Error::SqliteFailure(it, _)) => matches!(
            it.code,
            CannotOpen | DatabaseBusy | DatabaseLocked | DiskFull | PermissionDenied | ReadOnly | SystemIoFailure
        ),
        Some(_) => false,
        None => error.downcast_ref::<file::Error>().is_some(),
    }
}

fn connect(folder: &Path) -> Result<Connection, StoreError> {
    file::private_folder(folder)?;
    let path = folder.join(NAME);
    drop(file::append(&path)?);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection
        .execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")?;
    let version = |it: &Connection| it.query_row("PRAGMA user_version", [], |it| it.get::<_, i64>(0));
    if version(&connection)? == 0 {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        // Another program may have made it meanwhile.
        if version(&connection)? == 0 {
            connection.execute_batch(&format!(
                "CREATE TABLE model (key INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, dims INTEGER NOT NULL);
                 CREATE TABLE vector (model INTEGER NOT NULL, hash BLOB NOT NULL, vector BLOB NOT NULL, used INTEGER NOT NULL,
                     PRIMARY KEY (model, hash)) WITHOUT ROWID;
                 PRAGMA user_version = {VERSION};"
            ))?;
        }
        connection.execute_batch("COMMIT")?;
    }
    anyhow::ensure!(
        version(&connection)? == VERSION,
        "the file of vectors has another version"
    );
    Ok(connection)
}

/// Days since 1970.
fn today() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs() / 86_400) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(at: u8) -> (TextHash, Vector) {
        let exact: Vec<f32> = (0..64_u8).map(|it| f32::from(it ^ at) + 1.0).collect();
        (TextHash([at; 16]), Vector::of(&exact).expect("a direction"))
    }

    fn all(store: &Store, hashes: &[TextHash]) -> Vec<(TextHash, Vector)> {
        let mut found = Vec::new();
        let read = store.read(hashes.iter().copied(), |hash, vector| found.push((hash, vector)));
        read.expect("it can be read");
        found
    }

    #[test]
    fn vectors_are_kept_by_model_and_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let vectors: Vec<_> = (0..10).map(vector).collect();
        let hashes: Vec<_> = vectors.iter().map(|it| it.0).collect();
        let store = Store::open(folder.path(), "a", u64::MAX).expect("a store");
        // Another program, at the same time.
        let second = Store::open(folder.path(), "a", u64::MAX).expect("a store");
        assert_eq!(all(&store, &hashes), []);
        assert_eq!(all(&second, &hashes), []);
        store.write(&vectors[..6]).expect("stored");
        assert_eq!(all(&second, &hashes), vectors[..6]);
        let version = store.version();
        second.write(&vectors[6..]).expect("stored");
        assert_ne!(store.version(), version);
        assert_eq!(all(&store, &hashes), vectors);
        let other = Store::open(folder.path(), "b", u64::MAX).expect("a store");
        assert_eq!(all(&other, &hashes), []);
        let (models, bytes) = stored(folder.path()).expect("readable").expect("a file");
        assert_eq!(
            models,
            [Stored {
                model: "a".to_owned(),
                dims: 64,
                vectors: 10
            }]
        );
        assert!(bytes > 0);
        assert!(clear(folder.path()).expect("gone").is_some());
        assert_eq!(stored(folder.path()).expect("readable").expect("a file").0, []);
        // Those that had it open go on.
        assert_eq!(all(&store, &hashes), []);
        store.write(&vectors[..2]).expect("stored");
        assert_eq!(all(&second, &hashes), vectors[..2]);
    }

    #[test]
    fn a_damaged_file_is_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        for content in [&b"nonsense, and more of it than a header has ...."[..], &[0; 4096]] {
            std::fs::write(folder.path().join(NAME), content).expect("a file");
            let store = Store::open(folder.path(), "a", u64::MAX).expect("a store");
            store.write(&[vector(1)]).expect("stored");
            assert_eq!(all(&store, &[TextHash([1; 16])]).len(), 1);
            drop(store);
            discard(folder.path()).expect("gone");
        }
        drop(Store::open(folder.path(), "a", u64::MAX).expect("a store"));
        let connection = Connection::open(folder.path().join(NAME)).expect("a file");
        connection.execute_batch("PRAGMA user_version = 99").expect("written");
        drop(connection);
        assert!(Store::open(folder.path(), "a", u64::MAX).is_ok());
    }

    #[test]
    fn a_vector_that_is_damaged_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), "a", u64::MAX).expect("a store");
        store.write(&[vector(1), vector(2)]).expect("stored");
        let change = "UPDATE vector SET vector = x'0102' WHERE hash = ?1";
        store.connection.execute(change, [[1_u8; 16]]).expect("damaged");
        assert_eq!(all(&store, &[TextHash([1; 16]), TextHash([2; 16])]), [vector(2)]);
    }

    #[test]
    fn what_is_used_least_goes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), "a", 256 << 10).expect("a store");
        for round in 0..40_u8 {
            let vectors: Vec<_> = (0..100_u8)
                .map(|at| {
                    let (_, vector) = vector(at);
                    let mut hash = [at; 16];
                    hash[0] = round;
                    (TextHash(hash), vector)
                })
                .collect();
            store.write(&vectors).expect("stored");
            if round == 0 {
                store.connection.execute("UPDATE vector SET used = 1", []).expect("old");
            }
        }
        assert!(store.bytes().expect("a size") <= 256 << 10);
        let mut first = [5; 16];
        first[0] = 0;
        assert_eq!(all(&store, &[TextHash(first)]), []);
        first[0] = 39;
        assert_eq!(all(&store, &[TextHash(first)]).len(), 1);
    }

    #[test]
    fn a_model_with_other_dimensions_replaces_the_old_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), "a", u64::MAX).expect("a store");
        store.write(&[vector(1)]).expect("stored");
        let short = Vector::of(&[1.0, 2.0]).expect("a direction");
        store.write(&[(TextHash([2; 16]), short.clone())]).expect("stored");
        assert_eq!(
            all(&store, &[TextHash([1; 16]), TextHash([2; 16])]),
            [(TextHash([2; 16]), short)]
        );
    }
}
