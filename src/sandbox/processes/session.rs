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

    /// Tells the sentinel that a command leads this group, whose list on the disk has the name `list`; empty without one.
    pub fn watch(&self, group: Option<Pid>, list: &str) -> Option<Grave> {
        let sentinel = lock(&self.sentinel);
        let sentinel = sentinel.as_ref().and_then(|it| it.try_clone().ok());
        let (sentinel, group) = sentinel.zip(group)?;
        let mut grave = Grave {
            sentinel,
            group,
            list: list.to_owned(),
        };
        grave.tell('+');
        Some(grave)
    }
}

/// A command as the sentinel knows it.
#[derive(Debug)]
pub struct Grave {
    sentinel: io::PipeWriter,
    group: Pid,
    list: String,
}

impl Grave {
    /// The group is gone, and its number may be another's: only its list counts from here on.
    pub fn dig(&mut self) {
        self.tell('=');
    }

    /// The list is gone, too.
    pub fn close(&mut self) {
        self.tell('-');
    }

    fn tell(&mut self, word: char) {
        let line = format!("{word} {} {}\n", self.group.as_raw_nonzero(), self.list);
        self.sentinel.write_all(line.as_bytes()).ok();
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
