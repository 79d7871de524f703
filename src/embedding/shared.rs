//! Vectors that people and machines share: a folder or an HTTP server with an object for each file's chunks.
//!
//! Only vectors leave this machine, and hashes of what they are of. An object is named by the model and the hashes of the file's
//! chunks, so it never changes; what is read is checked for all of that, and for its own hash.

use std::{collections::HashSet, path::PathBuf, sync::Mutex, sync::PoisonError, time::Duration};

use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;

use super::{Vector, install::hexadecimal};
use crate::{
    config::{Connection, Environment, KeySource, Secret},
    index::TextHash,
    net::client::{Client, Request},
    os::file,
};

/// First line of an object.
const MAGIC: &[u8] = b"SHEAFVEC1\n";
/// Maximum size of an object, in bytes.
const LONGEST: usize = 32 << 20;
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
    place: SharedPlace,
    /// Model and version.
    model: String,
    /// Names of objects that are not there, or could not be read. Asked for once.
    absent: Mutex<HashSet<String>>,
    /// Why it is not used any more.
    failure: Mutex<Option<String>>,
}

enum SharedPlace {
    Folder(PathBuf),
    Server {
        client: Client,
        token: KeySource,
        environment: Environment,
    },
}

/// The head of an object: a line of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    model: String,
    dims: usize,
    count: usize,
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
        } else {
            let peer = Connection::default().at(address).peer();
            let peer = peer.map_err(|it| format!("index.cache: {it}"))?;
            SharedPlace::Server {
                client: Client::new(peer).map_err(|it| format!("index.cache: {it}"))?,
                token: token.clone(),
                environment: environment.clone(),
            }
        };
        Ok(Self {
            place,
            model: model.to_owned(),
            absent: Mutex::default(),
            failure: Mutex::default(),
        })
    }

    /// Why it is not used any more; `None` while it is.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, why: String) {
        tracing::warn!(why, "shared vectors are not used any more");
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(why);
    }

    /// The name of a file's object: model, then the hash of its chunks' hashes.
    fn name(&self, chunks: &FileChunks) -> String {
        let model = hexadecimal(self.model.as_bytes());
        let bytes: Vec<u8> = chunks.iter().flat_map(|it| it.0).collect();
        let hash = hexadecimal(&bytes);
        let part = |text: &str, length| text.get(..length).unwrap_or_default().to_owned();
        format!("v1/{}/{}/{}.vec", part(&model, 16), part(&hash, 2), part(&hash, 40))
    }

    /// The vectors of files, as far as they are there.
    pub fn get(&self, files: &[FileChunks]) -> Vec<(TextHash, Vector)> {
        if self.failure().is_some() {
            return Vec::new();
        }
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        let named = files
            .iter()
            .map(|it| (self.name(it), it))
            .filter(|it| !it.1.is_empty() && !absent.contains(&it.0));
        let wanted: Vec<(String, &FileChunks)> = named.collect();
        drop(absent);
        let objects: Vec<Option<Vec<u8>>> = match &self.place {
            SharedPlace::Folder(folder) => wanted
                .iter()
                .map(|(name, _)| file::read(&folder.join(name), LONGEST as u64).ok())
                .collect(),
            SharedPlace::Server { .. } => {
                let names = wanted.iter().map(|it| it.0.clone());
                match self.wait(self.fetch_all(names.collect())) {
                    Some(objects) => objects,
                    None => return Vec::new(),
                }
            }
        };
        let mut found = Vec::new();
        for ((name, chunks), object) in wanted.into_iter().zip(objects) {
            let vectors = object.and_then(|it| read(&it, &self.model, chunks));
            match vectors {
                Some(vectors) => found.extend(chunks.iter().copied().zip(vectors)),
                None => {
                    self.absent.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
                }
            }
        }
        found
    }

    /// Stores the vectors of a file's chunks, in their order, unless they are there.
    pub fn put(&self, chunks: &FileChunks, vectors: &[Vector]) {
        if self.failure().is_some() || chunks.is_empty() || chunks.len() != vectors.len() {
            return;
        }
        let Some(object) = written(&self.model, chunks, vectors) else {
            return;
        };
        let name = self.name(chunks);
        match &self.place {
            SharedPlace::Folder(folder) => {
                let path = folder.join(&name);
                if path.exists() {
                    return;
                }
                let parent = path.parent().map(std::fs::create_dir_all);
                let stored = match parent {
                    Some(Err(error)) => Err(error.to_string()),
                    Some(Ok(())) | None => {
                        file::write(&path, &object, file::Access::Shared).map_err(|it| it.to_string())
                    }
                };
                if let Err(why) = stored {
                    self.fail(why);
                }
            }
            SharedPlace::Server { .. } => {
                self.wait(self.send(name, object));
            }
        }
    }

    /// Waits for a server on a thread that may. `None`: it took too long, or there is no runtime.
    fn wait<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let runtime = Handle::try_current().ok()?;
        let done = runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await });
        if done.is_err() {
            self.fail(format!("the server did not answer within {} s", PATIENCE.as_secs()));
        }
        done.ok()
    }

    async fn token(&self) -> Option<Secret> {
        let SharedPlace::Server { token, environment, .. } = &self.place else {
            return None;
        };
        match token.resolve(environment).await {
            Ok(token) => token,
            Err(error) => {
                self.fail(format!("index.cache_token: {error}"));
                None
            }
        }
    }

    async fn fetch_all(&self, names: Vec<String>) -> Vec<Option<Vec<u8>>> {
        let token = self.token().await;
        let requests = names.into_iter().map(|name| self.fetch(name, token.as_ref()));
        futures::stream::iter(requests).buffered(TOGETHER).collect().await
    }

    fn request(request: Request, token: Option<&Secret>) -> Request {
        match token {
            Some(token) => request.bearer(token.expose()),
            None => request,
        }
    }

    async fn fetch(&self, name: String, token: Option<&Secret>) -> Option<Vec<u8>> {
        let SharedPlace::Server { client, .. } = &self.place else {
            return None;
        };
        if self.failure().is_some() {
            return None;
        }
        let response = match client.open(Self::request(Request::get(name), token)).await {
            Ok(response) => response,
            Err(error) => {
                self.fail(error.to_string());
                return None;
            }
        };
        match response.status.as_u16() {
            200 => response.body.read(LONGEST).await.ok(),
            404 | 410 => None,
            status => {
                self.fail(format!("the server answered {status}"));
                None
            }
        }
    }

    async fn send(&self, name: String, object: Vec<u8>) {
        let SharedPlace::Server { client, .. } = &self.place else {
            return;
        };
        let token = self.token().await;
        match client
            .open(Self::request(Request::head(name.clone()), token.as_ref()))
            .await
        {
            Ok(response) if response.status.is_success() => return,
            Ok(_) => {}
            Err(error) => return self.fail(error.to_string()),
        }
        match client
            .open(Self::request(Request::put(name, object), token.as_ref()))
            .await
        {
            Ok(response) if response.status.is_success() => {}
            // Many may only read.
            Ok(response) => tracing::debug!(status = %response.status, "a vector is not stored on the server"),
            Err(error) => self.fail(error.to_string()),
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

/// The vectors of an object, if it is one of this model and of these chunks.
fn read(object: &[u8], model: &str, chunks: &FileChunks) -> Option<Vec<Vector>> {
    let (content, seal) = object.split_at_checked(object.len().checked_sub(SEAL)?)?;
    if Sha256::digest(content).as_slice() != seal {
        return None;
    }
    let rest = content.strip_prefix(MAGIC)?;
    let end = rest.iter().position(|it| *it == b'\n')?;
    let head: Head = serde_json::from_slice(rest.get(..end)?).ok()?;
    let entries = rest.get(end + 1..)?;
    let size = head.dims.checked_add(16 + 4)?;
    let is_sound =
        head.model == model && head.count == chunks.len() && head.count.checked_mul(size) == Some(entries.len());
    if !is_sound {
        return None;
    }
    let mut vectors = Vec::with_capacity(chunks.len());
    for (entry, chunk) in entries.chunks(size).zip(chunks) {
        let (hash, vector) = entry.split_at_checked(16)?;
        if hash != chunk.0 {
            return None;
        }
        vectors.push(Vector::read(vector, head.dims)?);
    }
    Some(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(at: u8) -> Vector {
        let exact: Vec<f32> = (0..16_u8).map(|it| f32::from(it ^ at) + 1.0).collect();
        Vector::of(&exact).expect("a direction")
    }

    #[test]
    fn an_object_is_what_it_says_or_nothing() {
        let chunks: FileChunks = (0..5).map(|it| TextHash([it; 16])).collect();
        let vectors: Vec<_> = (0..5).map(vector).collect();
        let object = written("m@1", &chunks, &vectors).expect("an object");
        assert_eq!(read(&object, "m@1", &chunks), Some(vectors));
        assert_eq!(read(&object, "m@2", &chunks), None);
        let mut others = chunks.clone();
        others.swap(1, 2);
        assert_eq!(read(&object, "m@1", &others), None);
        assert_eq!(read(&object, "m@1", &chunks[..4].to_vec()), None);
        for at in 0..object.len() {
            let mut damaged = object.clone();
            damaged[at] ^= 1;
            assert_eq!(read(&damaged, "m@1", &chunks), None, "{at}");
            assert_eq!(read(&object[..at], "m@1", &chunks), None, "{at}");
        }
        // Sealed, and yet wrong: other dimensions than it has bytes for.
        let head = br#"{"model":"m@1","dims":18446744073709551600,"count":5}"#;
        let mut forged = [MAGIC, head, b"\n", &[0; 100]].concat();
        forged.extend_from_slice(&Sha256::digest(&forged));
        let read = std::panic::catch_unwind(|| read(&forged, "m@1", &chunks));
        assert_eq!(read.expect("no panic"), None);
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
        assert_eq!(own.get(std::slice::from_ref(&chunks)), []);
        own.put(&chunks, &vectors);
        let expected: Vec<_> = chunks.iter().copied().zip(vectors).collect();
        assert_eq!(open("m@1").get(std::slice::from_ref(&chunks)), expected);
        assert_eq!(open("m@2").get(std::slice::from_ref(&chunks)), []);
        for address in ["file://relative", "ftp://host/x", "http://example.org/x", "nonsense"] {
            let opened = SharedVectors::new(address, &KeySource::None, &Environment::default(), "m");
            assert!(opened.is_err(), "{address}");
        }
    }
}
