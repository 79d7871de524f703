//! Which files of which workspace the user has let act, by what stood in them.
//!
//! A repository is somebody else's: its settings, its rules and what names programs do nothing before the user has said
//! that they may. What was said holds for a folder (its path and what lies there) and for the content of each file: a
//! file that changes, and one that comes later, is asked about again.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::os::file::{self, Access};

/// A list larger than this is none of ours.
const LIMIT_BYTES: u64 = 16 << 20;
/// Where a workspace keeps words that are sent by a name, the nearer folder first.
pub const COMMANDS: [&str; 2] = [".sheaf/commands", ".cursor/commands"];
/// So often it is tried to be the only one who writes it.
const TRIES: u32 = 100;

/// What stood in a file, as a number that nobody can aim at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Print(String);

impl Print {
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            // So that no two lists of parts look alike.
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(format!("{:x}", hasher.finalize()))
    }
}

/// What the user said of one workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// Number of the device and of the folder: another folder under the same name is another workspace.
    folder: (u64, u64),
    /// What lies there may act; else the user does not want to be asked about these files again.
    pub is_trusted: bool,
    /// By path from the root.
    pub files: BTreeMap<String, Print>,
}

impl Said {
    /// Whether this very content was shown to the user.
    pub fn knows(&self, path: &str, print: &Print) -> bool {
        self.files.get(path) == Some(print)
    }

    /// Whether it may act.
    pub fn lets(&self, path: &str, print: &Print) -> bool {
        self.is_trusted && self.knows(path, print)
    }
}

/// The list on the disk.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Listed {
    /// A list of a later program is not understood, and not overwritten.
    version: u32,
    workspaces: BTreeMap<String, Said>,
    /// Folders in which the user lets commands write the whole workspace where the sandbox is partial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    guarded: BTreeMap<String, (u64, u64)>,
}

/// Of the form above.
const VERSION: u32 = 1;

/// Why what was said could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("{} is no list of ours\nmove it aside", .0.display())]
    Foreign(PathBuf),
    #[error("{} is being written by another program", .0.display())]
    Busy(PathBuf),
    #[error("the folder of the workspace cannot be looked at")]
    Folder(#[source] std::io::Error),
    #[error(transparent)]
    File(#[from] file::Error),
}

impl Ledger {
    /// The list in the folder of the program's state.
    pub fn under(state: &Path) -> Self {
        Self {
            path: state.join("trust.json"),
        }
    }

    /// What was said of a workspace. A list that cannot be read says nothing of anybody.
    pub fn said(&self, root: &Path) -> Said {
        let listed = self.read().unwrap_or_else(|error| {
            tracing::warn!(%error, "what is trusted cannot be read: nothing is");
            Listed::default()
        });
        let said = listed.workspaces.get(&name(root)).cloned().unwrap_or_default();
        match identity(root) {
            Ok(folder) if folder == said.folder => said,
            Ok(_) | Err(_) => Said::default(),
        }
    }

    /// Whether the user lets commands write the whole of this workspace where the sandbox is partial.
    pub fn is_guarded(&self, root: &Path) -> bool {
        let listed = self.read().unwrap_or_default();
        let folder = listed.guarded.get(&name(root));
        folder.is_some_and(|folder| identity(root).is_ok_and(|it| it == *folder))
    }

    /// Keeps whether the user lets them.
    pub fn set_guarded(&self, root: &Path, is_guarded: bool) -> Result<(), LedgerError> {
        let folder = identity(root).map_err(LedgerError::Folder)?;
        self.change(|listed| {
            if is_guarded {
                listed.guarded.insert(name(root), folder);
            } else {
                listed.guarded.remove(&name(root));
            }
        })
    }

    /// Keeps what was said of these files; of other files nothing is known any more.
    pub fn say(&self, root: &Path, is_trusted: bool, files: BTreeMap<String, Print>) -> Result<Said, LedgerError> {
        let said = Said {
            folder: identity(root).map_err(LedgerError::Folder)?,
            is_trusted,
            files,
        };
        self.change(|listed| {
            listed.workspaces.insert(name(root), said.clone());
        })?;
        Ok(said)
    }

    fn change(&self, change: impl FnOnce(&mut Listed)) -> Result<(), LedgerError> {
        if let Some(folder) = self.path.parent() {
            file::private_folder(folder)?;
        }
        // Two programs may be asked at the same time; each holds it for the moment of a write.
        let mut tries = 0;
        let _held = loop {
            match file::lock(&self.path.with_extension("lock"))? {
                file::Locked::Ours(lock) => break lock,
                file::Locked::Theirs { .. } if tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                file::Locked::Theirs { .. } => return Err(LedgerError::Busy(self.path.clone())),
            }
        };
        let mut listed = self.read()?;
        listed.version = VERSION;
        change(&mut listed);
        let text = serde_json::to_vec_pretty(&listed).unwrap_or_default();
        file::write(&self.path, &text, Access::Private)?;
        Ok(())
    }

    fn read(&self) -> Result<Listed, LedgerError> {
        let bytes = match file::read(&self.path, LIMIT_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_absent() => return Ok(Listed::default()),
            Err(error) => return Err(error.into()),
        };
        let listed = serde_json::from_slice::<Listed>(&bytes).ok();
        let listed = listed.filter(|it| it.version <= VERSION);
        listed.ok_or_else(|| LedgerError::Foreign(self.path.clone()))
    }
}

/// Paths need not be text; two that differ elsewhere differ here, too.
fn name(root: &Path) -> String {
    match root.to_str() {
        Some(text) => text.to_owned(),
        None => root.as_os_str().as_encoded_bytes().escape_ascii().to_string(),
    }
}

#[cfg(unix)]
fn identity(root: &Path) -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let about = std::fs::metadata(root)?;
    Ok((about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn identity(root: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(root).map(|_| (0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(text: &str) -> Print {
        Print::of(&[text.as_bytes()])
    }

    #[test]
    fn what_was_said_holds_for_a_folder_and_for_a_content() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::under(&folder.path().join("state"));
        let root = folder.path().join("work");
        std::fs::create_dir(&root).unwrap();
        assert_eq!(ledger.said(&root), Said::default());
        let files = BTreeMap::from([("AGENTS.md".to_owned(), print("be kind"))]);
        ledger.say(&root, true, files.clone()).unwrap();
        let said = ledger.said(&root);
        assert!(said.lets("AGENTS.md", &print("be kind")));
        for (path, text) in [("AGENTS.md", "be evil"), ("src/AGENTS.md", "be kind"), ("", "")] {
            assert!(!said.lets(path, &print(text)), "{path} {text}");
        }
        // A no is remembered as a no, and for these contents only.
        ledger.say(&root, false, files).unwrap();
        let said = ledger.said(&root);
        assert!(said.knows("AGENTS.md", &print("be kind")) && !said.lets("AGENTS.md", &print("be kind")));
        // Another folder in the same place is another one.
        ledger.say(&root, true, BTreeMap::new()).unwrap();
        std::fs::rename(&root, folder.path().join("old")).unwrap();
        std::fs::create_dir(&root).unwrap();
        assert_eq!(ledger.said(&root), Said::default());
        assert!(!ledger.said(&folder.path().join("old")).is_trusted);
    }

    #[test]
    fn a_list_that_is_not_ours_trusts_nobody_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::under(folder.path());
        for text in ["", "[]", "{\"version\":2,\"workspaces\":{}}", "not json"] {
            std::fs::write(folder.path().join("trust.json"), text).unwrap();
            assert_eq!(ledger.said(folder.path()), Said::default(), "{text}");
            let refused = ledger.say(folder.path(), true, BTreeMap::new());
            assert!(matches!(refused, Err(LedgerError::Foreign(_))), "{text}");
            assert_eq!(std::fs::read_to_string(folder.path().join("trust.json")).unwrap(), text);
        }
    }

    #[test]
    fn a_folder_is_guarded_while_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::under(&folder.path().join("state"));
        let root = folder.path().join("work");
        std::fs::create_dir(&root).unwrap();
        assert!(!ledger.is_guarded(&root));
        ledger.set_guarded(&root, true).unwrap();
        ledger.say(&root, true, BTreeMap::new()).unwrap();
        assert!(ledger.is_guarded(&root) && !ledger.is_guarded(folder.path()));
        std::fs::rename(&root, folder.path().join("old")).unwrap();
        std::fs::create_dir(&root).unwrap();
        assert!(!ledger.is_guarded(&root));
        ledger.set_guarded(&root, true).unwrap();
        ledger.set_guarded(&root, false).unwrap();
        assert!(!ledger.is_guarded(&root));
    }

    #[test]
    fn parts_are_told_apart() {
        assert_ne!(Print::of(&[b"ab", b"c"]), Print::of(&[b"a", b"bc"]));
        assert_ne!(Print::of(&[b"ab"]), Print::of(&[b"ab", b""]));
    }
}
