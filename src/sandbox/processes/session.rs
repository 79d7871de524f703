//! State that a conversation's commands share once the first has run: folders for temporary files and logs, and the
//! sentinel.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, atomic::AtomicU64},
};

use rustix::process::Pid;

use super::{
    launch::watch_over,
    running::{Running, lock},
};
use crate::{os::file, sandbox::kernel::SharedNetwork};

/// Conversations whose logs are kept.
const MOST_CONVERSATIONS: usize = 32;
/// Ended commands of a conversation whose output is kept in memory.
const MOST_ENDED: usize = 50;

/// State of a conversation that has run a command.
#[derive(Debug)]
pub struct Session {
    pub name: String,
    /// Private, for temporary files; canonical.
    pub temporary: PathBuf,
    /// Canonical.
    pub logs: PathBuf,
    pub count: AtomicU64,
    pub running: Mutex<BTreeMap<u64, Running>>,
    /// The input of the sentinel; none where it could not be started.
    pub sentinel: Mutex<Option<io::PipeWriter>>,
    /// The network of its commands, once one has needed it; `None` inside where this machine allows none.
    network: OnceLock<Option<Arc<SharedNetwork>>>,
}

impl Session {
    /// `aside` is the folder where the lists of running commands are.
    pub fn begin(logs: Option<&Path>, root: &Path, aside: Option<&Path>) -> io::Result<Self> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let temporary = std::env::temp_dir().join(format!("sheaf-{name}"));
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&temporary)?;
        let temporary = temporary.canonicalize()?;
        let folder = match logs {
            Some(logs) => {
                prune(logs);
                logs.join(&name)
            }
            None => temporary.join("logs"),
        };
        file::private_folder(&folder).map_err(io::Error::other)?;
        let sentinel = watch_over(&name, &temporary, root, aside);
        if let Err(error) = &sentinel {
            tracing::warn!(%error, "the sentinel of commands could not be started");
        }
        Ok(Self {
            name,
            logs: folder.canonicalize()?,
            temporary,
            count: AtomicU64::new(0),
            running: Mutex::default(),
            sentinel: Mutex::new(sentinel.ok()),
            network: OnceLock::new(),
        })
    }

    /// The network that its commands share. `None`: each has one of its own.
    pub fn network(&self) -> Option<Arc<SharedNetwork>> {
        let made = self.network.get_or_init(|| match SharedNetwork::make() {
            Ok(network) => Some(Arc::new(network)),
            Err(error) => {
                tracing::warn!(%error, "commands cannot share a network; each has its own");
                None
            }
        });
        made.clone()
    }

    /// Stores a command under its number; of many ended ones the oldest are dropped.
    pub fn remember(&self, number: u64, command: Running) {
        let mut running = lock(&self.running);
        running.insert(number, command);
        while running.len() > MOST_ENDED {
            let Some(oldest) = running.iter().find(|it| it.1.outcome().is_some()).map(|it| *it.0) else {
                return;
            };
            running.remove(&oldest);
        }
    }

    /// Sends a line to the sentinel.
    pub fn tell(&self, text: &str) {
        if let Some(sentinel) = &mut *lock(&self.sentinel) {
            sentinel.write_all(text.as_bytes()).ok();
        }
    }

    /// Returns a pipe to the sentinel whose closing tells it that `group` has ended, and the sentinel's id.
    pub fn sentinel_end(&self, group: Option<Pid>) -> Option<(io::PipeWriter, Pid)> {
        let sentinel = lock(&self.sentinel);
        sentinel.as_ref().and_then(|it| it.try_clone().ok()).zip(group)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.temporary).ok();
    }
}

/// Removes the logs of the conversations that are the oldest.
fn prune(logs: &Path) {
    let Ok(entries) = std::fs::read_dir(logs) else { return };
    let mut old: Vec<_> = entries
        .flatten()
        .filter_map(|it| Some((it.metadata().ok()?.modified().ok()?, it.path())))
        .collect();
    old.sort();
    let spare = (old.len() + 1).saturating_sub(MOST_CONVERSATIONS);
    for (_, path) in old.into_iter().take(spare) {
        std::fs::remove_dir_all(path).ok();
    }
}
