//! Vectors that people and machines share: a folder or an HTTP server with an object for each file's chunks.
//!
//! Only vectors leave this machine, and hashes of what they are of. An object is named by the model, the number of dimensions and the
//! hashes of the file's chunks, so it never changes; what is read is checked for all of that, and for its own hash. It is replaced
//! only if all of it was read and this hash is wrong: what cannot be read may be sound, and others use it.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use super::{Vector, install::hexadecimal, wait::wait};
use crate::{
    config::{Connection, Environment, KeySource, Secret},
    index::{IsOver, TextHash},
    net::client::{self, Client, Request},
    os::file,
};

/// First line of an object.
const MAGIC: &[u8] = b"SHEAFVEC1\n";
/// Bytes of a chunk in an object, beside its values: hash and scale.
const ENTRY: usize = 16 + 4;
/// Time after a failure in which it is left alone.
const PAUSE: Duration = Duration::from_mins(1);
/// Requests at the same time.
const TOGETHER: usize = 16;
/// Time for all requests of one search or step.
const PATIENCE: Duration = Duration::from_secs(5);
/// Length of the hash at the end of an object.
const SEAL: usize = 32;

/// The chunks of one file, in order.
pub type FileChunks = Vec<TextHash>;

/// Vectors in a folder or on a server that others use, too.
pub struct SharedVectors {
    address: String,
    place: SharedPlace,
    /// Model and version.
    model: String,
    /// Objects by name: each is asked for once.
    seen: Mutex<HashMap<String, Standing>>,
    /// Number of objects that were damaged.
    damaged: AtomicUsize,
    /// The last failure, after which it is left alone for a while.
    failure: Mutex<Option<(Instant, String)>>,
    /// Nothing may be stored there.
    only_reads: AtomicBool,
}

/// What is known of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    There,
    Absent,
    /// Something else is there, which is sound or too long to be one of ours: it is left alone.
    Foreign,
    /// Its hash is not that of its bytes: it is replaced.
    Damaged,
}

enum SharedPlace {
    Folder(PathBuf),
    Server(Arc<SharedServer>),
}

struct SharedServer {
    client: Client,
    token: KeySource,
    environment: Environment,
    resolved: OnceCell<Option<Secret>>,
}

/// The head of an object: a line of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    model: String,
    dims: usize,
    count: usize,
}

/// The files' chunks and the names of their objects.
struct Wanted {
    name: String,
    chunks: FileChunks,
}

impl SharedVectors {
    /// Shared vectors of a model at `address`: `file:///folder` or an HTTP address. Opens nothing. The error is a sentence.
    pub fn new(address: &str, token: &KeySource, environment: &Environment, model: &str) -> Result<Self, String> {
        let place = if let Some(folder) = address.strip_prefix("file://") {
            let folder = PathBuf::from(folder);
            if !folder.is_absolute() {
                return Err(format!(
                    "index.cache: {address} is no absolute folder; write file:///folder"
                ));
            }
            SharedPlace::Folder(folder)
        } else if !address.starts_with("https://") && !address.starts_with("http://") {
            return Err(format!(
                "index.cache: `{address}` is neither a folder (file:///folder) nor an address (https://…)"
            ));
        } else {
            let peer = Connection::default().at(address).peer();
            let peer = peer.map_err(|it| format!("index.cache: {it}"))?;
            SharedPlace::Server(Arc::new(SharedServer {
                client: Client::new(peer).map_err(|it| format!("index.cache: {it}"))?,
                token: token.clone(),
                environment: environment.clone(),
                resolved: OnceCell::new(),
            }))
        };
        Ok(Self {
            address: address.to_owned(),
            place,
            model: model.to_owned(),
            seen: Mutex::default(),
            damaged: AtomicUsize::new(0),
            failure: Mutex::default(),
            only_reads: AtomicBool::new(false),
        })
    }

    /// The place, as the settings name it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The reason why it is left alone; `None` while it is used.
    pub fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure
            .as_ref()
            .filter(|it| it.0.elapsed() < PAUSE)
            .map(|it| it.1.clone())
    }

    /// The number of objects that were damaged; what was computed takes their place, where anything may be stored.
    pub fn damaged(&self) -> usize {
        self.damaged.load(Ordering::Relaxed)
    }

    fn fail(&self, why: String) {
        tracing::warn!(why, "shared vectors are not used for a while");
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), why));
    }

    /// The name of a file's object: model and dimensions, then the hash of its chunks' hashes.
    fn name(&self, chunks: &FileChunks, dims: usize) -> String {
        let model = hexadecimal(self.model.as_bytes());
        let bytes: Vec<u8> = chunks.iter().flat_map(|it| it.0).collect();
        let hash = hexadecimal(&bytes);
        let part = |text: &str, length| text.get(..length).unwrap_or_default().to_owned();
        let model = part(&model, 16);
        format!("v1/{model}-{dims}/{}/{}.vec", part(&hash, 2), part(&hash, 40))
    }

    /// The vectors of files, as far as they are there and have `dims` dimensions.
    pub fn get(&self, files: &[FileChunks], dims: usize, is_over: IsOver<'_>) -> Vec<(TextHash, Vector)> {
        if self.failure().is_some() || dims == 0 {
            return Vec::new();
        }
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let named = files.iter().map(|it| Wanted {
            name: self.name(it, dims),
            chunks: it.clone(),
        });
        let wanted: Vec<Wanted> = named
            .filter(|it| !it.chunks.is_empty() && !seen.contains_key(&it.name))
            .collect();
        drop(seen);
        let names: Vec<String> = wanted.iter().map(|it| it.name.clone()).collect();
        let found: Vec<Object> = match &self.place {
            SharedPlace::Folder(folder) => wanted
                .iter()
                .map(|it| {
                    let path = folder.join(&it.name);
                    let object = file::read(&path, longest(&self.model, it, dims));
                    Ok(match object {
                        Ok(object) => Some(looked_at(&object, &self.model, &it.chunks, dims)),
                        Err(file::Error::TooLarge { .. }) => Some((Standing::Foreign, Vec::new())),
                        Err(error) if error.is_absent() => Some((Standing::Absent, Vec::new())),
                        Err(error) => unread(&error),
                    })
                })
                .collect(),
            SharedPlace::Server(server) => {
                let (server, model) = (Arc::clone(server), self.model.clone());
                let work = async move {
                    let requests = wanted.into_iter().map(|it| server.fetch(it, &model, dims));
                    futures::stream::iter(requests).buffered(TOGETHER).collect().await
                };
                match wait(work, PATIENCE, is_over) {
                    Some(found) => found,
                    None => {
                        self.fail(format!("the server did not answer within {} s", PATIENCE.as_secs()));
                        return Vec::new();
                    }
                }
            }
        };
        let mut vectors = Vec::new();
        for (name, found) in names.into_iter().zip(found) {
            match found {
                Ok(None) => {}
                Ok(Some((standing, found))) => {
                    if standing == Standing::Damaged {
                        self.damaged.fetch_add(1, Ordering::Relaxed);
                    }
                    self.note(name, standing);
                    vectors.extend(found);
                }
                Err(why) => self.fail(why),
            }
        }
        vectors
    }

    fn note(&self, name: String, standing: Standing) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name, standing);
    }

    /// Stores the vectors of a file's chunks, in their order, unless they are there.
    pub fn put(&self, chunks: &FileChunks, vectors: &[Vector]) {
        let is_off = self.failure().is_some() || self.only_reads.load(Ordering::Relaxed);
        if is_off || chunks.is_empty() || chunks.len() != vectors.len() {
            return;
        }
        let name = self.name(chunks, vectors.first().map_or(0, |it| it.values.len()));
        let standing = self
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&name)
            .copied();
        let is_taken = matches!(standing, Some(Standing::There | Standing::Foreign));
        let object = written(&self.model, chunks, vectors).filter(|_| !is_taken);
        let Some(object) = object else {
            return;
        };
        let replaces = standing == Some(Standing::Damaged);
        let stored = match &self.place {
            SharedPlace::Folder(folder) => stored(&folder.join(&name), &object, replaces).map(|()| true),
            SharedPlace::Server(server) => {
                let (server, name) = (Arc::clone(server), name.clone());
                let sent = wait(
                    async move { server.send(name, object, replaces).await },
                    PATIENCE,
                    &|| false,
                );
                sent.unwrap_or_else(|| Err(format!("the server did not answer within {} s", PATIENCE.as_secs())))
            }
        };
        match stored {
            Ok(true) => self.note(name, Standing::There),
            Ok(false) => self.only_reads.store(true, Ordering::Relaxed),
            Err(why) => self.fail(why),
        }
    }
}

/// An object and its vectors, if it is there and sound.
type Looked = (Standing, Vec<(TextHash, Vector)>);
/// The outcome of asking for an object (`None`: it could not be read to its end), or why the server cannot be used.
type Object = Result<Option<Looked>, String>;

/// Reads an object that somebody has stored.
fn looked_at(object: &[u8], model: &str, chunks: &FileChunks, dims: usize) -> Looked {
    let Some(content) = sealed(object) else {
        return (Standing::Damaged, Vec::new());
    };
    match vectors_of(content, model, chunks, dims) {
        Some(vectors) => (Standing::There, vectors),
        None => (Standing::Foreign, Vec::new()),
    }
}

/// Notes an object that cannot be read, or not to its end. It is asked for again.
fn unread(error: &dyn std::error::Error) -> Option<Looked> {
    tracing::debug!(%error, "a shared object cannot be read");
    None
}

/// Stores an object in a folder, unless it is there; `replaces`: what is there is damaged.
fn stored(path: &Path, object: &[u8], replaces: bool) -> Result<(), String> {
    let is_there = || path.try_exists().map_err(|it| format!("{}: {it}", path.display()));
    if !replaces && is_there()? {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|it| format!("{}: {it}", parent.display()))?;
    }
    file::write(path, object, file::Access::Shared).map_err(|it| it.to_string())
}

/// Maximum size of an object, in bytes.
fn longest(model: &str, wanted: &Wanted, dims: usize) -> u64 {
    (MAGIC.len() + 128 + 2 * model.len() + wanted.chunks.len() * (ENTRY + dims) + SEAL) as u64
}

impl SharedServer {
    async fn allowed(&self, request: Request) -> Result<Request, String> {
        let token = self
            .resolved
            .get_or_try_init(|| self.token.resolve(&self.environment))
            .await;
        match token.map_err(|it| format!("index.cache_token: {it}"))? {
            Some(token) => Ok(request.bearer(token.expose())),
            None => Ok(request),
        }
    }

    async fn fetch(&self, wanted: Wanted, model: &str, dims: usize) -> Object {
        let request = self.allowed(Request::get(wanted.name.clone())).await?;
        let response = self.client.open(request).await.map_err(|it| it.to_string())?;
        match response.status.as_u16() {
            200 => {
                let most = longest(model, &wanted, dims) as usize;
                Ok(match response.body.read(most).await {
                    Ok(object) => Some(looked_at(&object, model, &wanted.chunks, dims)),
                    Err(client::Error::TooLarge { .. }) => Some((Standing::Foreign, Vec::new())),
                    Err(error) => unread(&error),
                })
            }
            404 | 410 => Ok(Some((Standing::Absent, Vec::new()))),
            status => Err(format!("the server answered {status}")),
        }
    }

    /// Stores an object, unless it is there; `replaces`: what is there is damaged. Returns true if it is there now, false if
    /// nothing may be stored.
    async fn send(&self, name: String, object: Vec<u8>, replaces: bool) -> Result<bool, String> {
        if !replaces {
            let head = self.allowed(Request::head(name.clone())).await?;
            let answer = self.client.open(head).await.map_err(|it| it.to_string())?;
            if answer.status.is_success() {
                return Ok(true);
            }
        }
        let put = self.allowed(Request::put(name, object)).await?;
        let answer = self.client.open(put).await.map_err(|it| it.to_string())?;
        match answer.status.as_u16() {
            200..300 => Ok(true),
            401 | 403 | 405 | 501 => Ok(false),
            status => Err(format!("the server answered {status}")),
        }
    }
}

/// An object: the first line, the head, then hash and vector of each chunk, then the SHA-256 of all of that.
fn written(model: &str, chunks: &FileChunks, vectors: &[Vector]) -> Option<Vec<u8>> {
    let dims = vectors.first()?.values.len();
    let head = Head {
        model: model.to_owned(),
        dims,
        count: chunks.len(),
    };
    let mut object = MAGIC.to_vec();
    object.extend(serde_json::to_vec(&head).ok()?);
    object.push(b'\n');
    for (hash, vector) in chunks.iter().zip(vectors) {
        if vector.values.len() != dims {
            return None;
        }
        object.extend_from_slice(&hash.0);
        object.extend(vector.bytes());
    }
    object.extend_from_slice(&Sha256::digest(&object));
    Some(object)
}

/// The part of an object before its seal. `None`: it is not that of a whole object.
fn sealed(object: &[u8]) -> Option<&[u8]> {
    let (content, seal) = object.split_at_checked(object.len().checked_sub(SEAL)?)?;
    (Sha256::digest(content).as_slice() == seal).then_some(content)
}

/// The vectors of an object, if it is one of this model and of these chunks, with `dims` dimensions.
fn vectors_of(content: &[u8], model: &str, chunks: &FileChunks, dims: usize) -> Option<Vec<(TextHash, Vector)>> {
    let rest = content.strip_prefix(MAGIC)?;
    let end = rest.iter().position(|it| *it == b'\n')?;
    let head: Head = serde_json::from_slice(rest.get(..end)?).ok()?;
    let entries = rest.get(end + 1..)?;
    let size = dims.checked_add(ENTRY)?;
    let is_sound = head.model == model
        && head.dims == dims
        && head.count == chunks.len()
        && head.count.checked_mul(size) == Some(entries.len());
    if !is_sound {
        return None;
    }
    let mut vectors = Vec::with_capacity(chunks.len());
    for (entry, chunk) in entries.chunks(size).zip(chunks) {
        let (hash, vector) = entry.split_at_checked(16)?;
        if hash != chunk.0 {
            return None;
        }
        vectors.push((*chunk, Vector::read(vector, dims)?));
    }
    Some(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::test_server;

    fn read(object: &[u8], model: &str, chunks: &FileChunks, dims: usize) -> Option<Vec<(TextHash, Vector)>> {
        vectors_of(sealed(object)?, model, chunks, dims)
    }

    fn vector(at: u8) -> Vector {
        let exact: Vec<f32> = (0..16_u8).map(|it| f32::from(it ^ at) + 1.0).collect();
        Vector::of(&exact).expect("a direction")
    }

    #[test]
    fn an_object_is_what_it_says_or_nothing() {
        let chunks: FileChunks = (0..5).map(|it| TextHash([it; 16])).collect();
        let vectors: Vec<_> = (0..5).map(vector).collect();
        let object = written("m@1", &chunks, &vectors).expect("an object");
        let expected: Vec<_> = chunks.iter().copied().zip(vectors).collect();
        assert_eq!(read(&object, "m@1", &chunks, 16), Some(expected));
        assert_eq!(read(&object, "m@1", &chunks, 15), None);
        assert_eq!(read(&object, "m@2", &chunks, 16), None);
        let mut others = chunks.clone();
        others.swap(1, 2);
        assert_eq!(read(&object, "m@1", &others, 16), None);
        assert_eq!(read(&object, "m@1", &chunks[..4].to_vec(), 16), None);
        for at in 0..object.len() {
            let mut damaged = object.clone();
            damaged[at] ^= 1;
            assert_eq!(read(&damaged, "m@1", &chunks, 16), None, "{at}");
            assert_eq!(read(&object[..at], "m@1", &chunks, 16), None, "{at}");
        }
        // Sealed, and yet wrong: other dimensions than it has bytes for.
        let head = br#"{"model":"m@1","dims":18446744073709551600,"count":5}"#;
        let mut forged = [MAGIC, head, b"\n", &[0; 100]].concat();
        forged.extend_from_slice(&Sha256::digest(&forged));
        let read = std::panic::catch_unwind(|| read(&forged, "m@1", &chunks, usize::MAX - 15));
        assert_eq!(read.expect("no panic"), None);
    }

    fn open(address: &str, model: &str) -> SharedVectors {
        SharedVectors::new(address, &KeySource::None, &Environment::default(), model).expect("an address")
    }

    /// Vectors with `dims` dimensions.
    fn vectors(chunks: &FileChunks, dims: usize) -> Vec<Vector> {
        let exact = |at: usize| (0..dims).map(|it| (it ^ at) as f32 + 1.0).collect::<Vec<_>>();
        (0..chunks.len())
            .map(|it| Vector::of(&exact(it)).expect("a direction"))
            .collect()
    }

    fn chunks() -> FileChunks {
        (0..3).map(|it| TextHash([it; 16])).collect()
    }

    /// The number of vectors of a file that somebody who has just come gets, and of objects that are damaged.
    fn got(address: &str, dims: usize) -> (usize, usize) {
        let shared = open(address, "m@1");
        let found = shared.get(&[chunks()], dims, &|| false);
        (found.len(), shared.damaged())
    }

    /// The one object in a folder.
    fn object(folder: &Path) -> PathBuf {
        let mut path = folder.to_owned();
        while path.is_dir() {
            let mut entries = std::fs::read_dir(&path).expect("a folder").flatten();
            path = entries.next().expect("an entry").path();
            assert!(entries.next().is_none());
        }
        path
    }

    #[test]
    fn a_damaged_object_is_replaced_and_is_whole_for_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = format!("file://{}", folder.path().display());
        let (chunks, vectors) = (chunks(), vectors(&chunks(), 16));
        open(&address, "m@1").put(&chunks, &vectors);
        let path = object(folder.path());
        let sound = std::fs::read(&path).expect("an object");
        let mut turned = sound.clone();
        turned[80] ^= 1;
        for damaged in [turned, sound[..sound.len() - 1].to_vec(), Vec::new()] {
            std::fs::write(&path, &damaged).expect("written");
            // Who has not looked at it does not know, and leaves it.
            open(&address, "m@1").put(&chunks, &vectors);
            assert_eq!(std::fs::read(&path).expect("there"), damaged);
            let own = open(&address, "m@1");
            assert_eq!(own.get(std::slice::from_ref(&chunks), 16, &|| false), []);
            assert_eq!(own.damaged(), 1);
            own.put(&chunks, &vectors);
            assert_eq!(std::fs::read(&path).expect("there"), sound);
            assert_eq!(got(&address, 16), (3, 0));
        }
    }

    #[test]
    fn what_is_sound_or_cannot_be_read_is_not_damaged_and_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = format!("file://{}", folder.path().display());
        let (chunks, few, many) = (chunks(), vectors(&chunks(), 16), vectors(&chunks(), 64));
        // Two who use a model with other dimensions do not meet.
        open(&address, "m@1").put(&chunks, &many);
        let own = open(&address, "m@1");
        assert_eq!(own.get(std::slice::from_ref(&chunks), 16, &|| false), []);
        assert_eq!(own.damaged(), 0);
        own.put(&chunks, &few);
        assert_eq!((got(&address, 16), got(&address, 64)), ((3, 0), (3, 0)));
        // What stands under this name, and is left alone by one who has looked at it.
        let folder = tempfile::tempdir().expect("a folder");
        let address = format!("file://{}", folder.path().display());
        open(&address, "m@1").put(&chunks, &few);
        let path = object(folder.path());
        let others = [
            written("m@1", &chunks, &many).expect("longer"),
            written("m@1", &chunks, &vectors(&chunks, 8)).expect("shorter"),
            written("m@2", &chunks, &few).expect("of another model"),
        ];
        for other in others {
            std::fs::write(&path, &other).expect("written");
            let own = open(&address, "m@1");
            assert_eq!(own.get(std::slice::from_ref(&chunks), 16, &|| false), []);
            own.put(&chunks, &few);
            assert_eq!((own.damaged(), own.failure()), (0, None));
            assert_eq!(std::fs::read(&path).expect("there"), other);
        }
        // What cannot be read now is read later.
        let own = open(&address, "m@1");
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("a folder in its place");
        assert_eq!(own.get(std::slice::from_ref(&chunks), 16, &|| false), []);
        own.put(&chunks, &few);
        assert!(path.is_dir() && own.damaged() == 0);
        std::fs::remove_dir(&path).expect("removed");
        std::fs::write(&path, written("m@1", &chunks, &few).expect("an object")).expect("written");
        let own = open(&address, "m@1");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o000)).expect("ours");
        if std::fs::File::open(&path).is_err() {
            assert_eq!(own.get(std::slice::from_ref(&chunks), 16, &|| false), []);
            own.put(&chunks, &few);
        }
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("ours");
        assert_eq!((own.damaged(), got(&address, 16)), (0, (3, 0)));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_that_breaks_off_is_not_damage() {
        let sound = written("m@1", &chunks(), &vectors(&chunks(), 16)).expect("an object");
        let head = |status: &str, length: usize| format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n");
        let page = |status: &str, length: usize, body: &[u8]| [head(status, length).as_bytes(), body].concat();
        let (half, most) = (&sound[..sound.len() / 2], sound.len());
        // What the server answers to GET, and whether the object is replaced.
        let cases = [
            ("it is cut", page("200 OK", most, half), 0, vec!["HEAD"]),
            ("it is cut at once", page("200 OK", most, b""), 0, vec!["HEAD"]),
            ("it is too long", page("200 OK", 10_000, &[0; 10_000]), 0, vec![]),
            ("the server is busy", page("503 Busy", 0, b""), 0, vec![]),
            ("it is refused", page("403 No", 0, b""), 0, vec![]),
            ("it is damaged", page("200 OK", half.len(), half), 1, vec!["PUT"]),
            ("it is sound", page("200 OK", most, &sound), 0, vec![]),
        ];
        for (name, answer, damaged, stored) in cases {
            let (told, mut diary) = test_server::diary();
            let address = test_server::listen(move |mut socket| {
                let (told, answer) = (told.clone(), answer.clone());
                async move {
                    let request = socket.request().await;
                    let method = request.split(' ').next().unwrap_or_default().to_owned();
                    if method == "GET" {
                        socket.send(answer).await;
                    } else {
                        told.send(method).ok();
                        socket.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                    }
                }
            })
            .await;
            let work = tokio::task::spawn_blocking(move || {
                let own = open(&address, "m@1");
                own.get(&[chunks()], 16, &|| false);
                own.put(&chunks(), &vectors(&chunks(), 16));
                own.damaged()
            });
            assert_eq!(work.await.expect("no panic"), damaged, "{name}");
            assert_eq!(diary.so_far(), stored, "{name}");
        }
    }

    #[test]
    fn a_folder_is_shared() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = format!("file://{}", folder.path().join("deep").display());
        let open =
            |model| SharedVectors::new(&address, &KeySource::None, &Environment::default(), model).expect("an address");
        let chunks: FileChunks = (0..3).map(|it| TextHash([it; 16])).collect();
        let vectors: Vec<_> = (0..3).map(vector).collect();
        let own = open("m@1");
        assert_eq!(own.get(std::slice::from_ref(&chunks), 16, &|| false), []);
        own.put(&chunks, &vectors);
        let expected: Vec<_> = chunks.iter().copied().zip(vectors).collect();
        assert_eq!(open("m@1").get(std::slice::from_ref(&chunks), 16, &|| false), expected);
        assert_eq!(open("m@2").get(std::slice::from_ref(&chunks), 16, &|| false), []);
        for address in ["file://relative", "ftp://host/x", "http://example.org/x", "nonsense"] {
            let opened = SharedVectors::new(address, &KeySource::None, &Environment::default(), "m");
            assert!(opened.is_err(), "{address}");
        }
    }
}
