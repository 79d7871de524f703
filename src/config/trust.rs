//! Workspaces that the user trusts, with a fingerprint of each trusted file.
//!
//! A repository is foreign: its settings, its rules and files that name programs have no effect until the user trusts
//! them. Trust holds for a folder (its path and inode) and for the content of each file: a changed or new file asks
//! again.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::os::file::{self, Access};

/// Maximum size of the trust file, in bytes.
const LIMIT_BYTES: u64 = 16 << 20;
/// Folders of a workspace with prompts that are sent by name, the nearer one first.
pub const COMMANDS: [&str; 3] = [".sheaf/commands", ".cursor/commands", ".claude/commands"];
/// SHA-256 of a file's content, as hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Computes the fingerprint of several parts. Their lengths count, so that no two lists of parts give the same one.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(format!("{:x}", hasher.finalize()))
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The user's decision on one workspace. The default means that nothing was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustRecord {
    /// Device and inode of the folder: another folder under the same name is another workspace.
    folder: (u64, u64),
    /// True if the files are trusted; false if the user does not want to be asked about them again.
    pub is_trusted: bool,
    /// Fingerprints by path, relative to the root, with `/`.
    pub files: BTreeMap<String, Fingerprint>,
    /// Files that the user was asked about without a yes: they stay off, and are asked about again when they change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub declined: BTreeMap<String, Fingerprint>,
}

impl TrustRecord {
    /// Returns true if the user decided on exactly this content, or was asked about it.
    pub fn has_seen(&self, path: &str, print: &Fingerprint) -> bool {
        self.files.get(path) == Some(print) || self.declined.get(path) == Some(print)
    }

    /// Returns true if the user trusts exactly this content.
    pub fn allows(&self, path: &str, print: &Fingerprint) -> bool {
        self.is_trusted && self.files.get(path) == Some(print)
    }
}

/// The trust file in the program's state folder.
#[derive(Clone, Debug)]
pub struct TrustStore {
    path: PathBuf,
}

/// Content of the trust file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    /// A file of a later version is neither read nor overwritten.
    version: u32,
    workspaces: BTreeMap<String, TrustRecord>,
    /// Folders in which the user lets commands write the whole workspace although the sandbox is partial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    guarded: BTreeMap<String, (u64, u64)>,
}

/// Version of [`TrustFile`].
const VERSION: u32 = 1;

/// Reason why a decision was not stored.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{} is not a list written by sheaf\nmove it aside", .0.display())]
    Foreign(PathBuf),
    #[error("{} is being written by another program", .0.display())]
    Busy(PathBuf),
    #[error("the folder of the workspace cannot be looked at")]
    Folder(#[source] std::io::Error),
    #[error(transparent)]
    File(#[from] file::Error),
}

impl TrustStore {
    /// Opens the trust file below the state folder. It need not exist.
    pub fn under(state: &Path) -> Self {
        Self {
            path: state.join("trust.json"),
        }
    }

    /// Returns the decision on a workspace. Empty if there is none, or if the file cannot be read.
    pub fn record(&self, root: &Path) -> TrustRecord {
        let file = self.read().unwrap_or_else(|error| {
            tracing::warn!(%error, "the list of trusted folders cannot be read: nothing is trusted");
            TrustFile::default()
        });
        let record = file.workspaces.get(&name(root)).cloned().unwrap_or_default();
        match identity(root) {
            Ok(folder) if folder == record.folder => record,
            Ok(_) | Err(_) => TrustRecord::default(),
        }
    }

    /// Returns true if the user lets commands write this whole workspace although the sandbox is partial.
    pub fn is_guarded(&self, root: &Path) -> bool {
        let file = self.read().unwrap_or_default();
        let folder = file.guarded.get(&name(root));
        folder.is_some_and(|folder| identity(root).is_ok_and(|it| it == *folder))
    }

    /// Stores that decision.
    pub fn set_guarded(&self, root: &Path, is_guarded: bool) -> Result<(), TrustError> {
        let folder = identity(root).map_err(TrustError::Folder)?;
        self.change(|file| {
            if is_guarded {
                file.guarded.insert(name(root), folder);
            } else {
                file.guarded.remove(&name(root));
            }
        })
    }

    /// Stores a decision on these files; it replaces any previous one on the workspace. Returns the new record.
    pub fn store(
        &self,
        root: &Path,
        is_trusted: bool,
        files: BTreeMap<String, Fingerprint>,
    ) -> Result<TrustRecord, TrustError> {
        let record = TrustRecord {
            folder: identity(root).map_err(TrustError::Folder)?,
            is_trusted,
            files,
            declined: BTreeMap::new(),
        };
        self.change(|file| {
            file.workspaces.insert(name(root), record.clone());
        })?;
        Ok(record)
    }

    /// Stores that the user was asked about these files without a yes. What is trusted stays so. Returns the new record.
    pub fn decline(&self, root: &Path, files: BTreeMap<String, Fingerprint>) -> Result<TrustRecord, TrustError> {
        let folder = identity(root).map_err(TrustError::Folder)?;
        let mut declined = TrustRecord::default();
        self.change(|file| {
            let record = file.workspaces.entry(name(root)).or_default();
            if record.folder != folder {
                *record = TrustRecord {
                    folder,
                    ..TrustRecord::default()
                };
            }
            record.declined.extend(files);
            declined = record.clone();
        })?;
        Ok(declined)
    }

    /// Stores that the user trusts exactly this file, whatever they said about others. What was trusted stays so.
    pub fn trust_file(&self, root: &Path, path: &str, print: Fingerprint) -> Result<(), TrustError> {
        let folder = identity(root).map_err(TrustError::Folder)?;
        self.change(|file| {
            let record = file.workspaces.entry(name(root)).or_default();
            if record.folder != folder || !record.is_trusted {
                *record = TrustRecord {
                    folder,
                    is_trusted: true,
                    ..TrustRecord::default()
                };
            }
            record.declined.remove(path);
            record.files.insert(path.to_owned(), print);
        })
    }

    fn change(&self, change: impl FnOnce(&mut TrustFile)) -> Result<(), TrustError> {
        if let Some(folder) = self.path.parent() {
            file::private_folder(folder)?;
        }
        // Two programs may store a decision at once; each holds the lock for one write.
        let held = file::lock_soon(&self.path.with_extension("lock"))?;
        let _held = held.ok_or_else(|| TrustError::Busy(self.path.clone()))?;
        let mut file = self.read()?;
        file.version = VERSION;
        change(&mut file);
        let text = serde_json::to_vec_pretty(&file).unwrap_or_default();
        file::write(&self.path, &text, Access::Private)?;
        Ok(())
    }

    fn read(&self) -> Result<TrustFile, TrustError> {
        let bytes = match file::read(&self.path, LIMIT_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_absent() => return Ok(TrustFile::default()),
            Err(error) => return Err(error.into()),
        };
        let file = serde_json::from_slice::<TrustFile>(&bytes).ok();
        let file = file.filter(|it| it.version <= VERSION);
        file.ok_or_else(|| TrustError::Foreign(self.path.clone()))
    }
}

/// Returns a path as a key. Bytes that are not text are escaped, so that different paths stay different.
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

    fn print(text: &str) -> Fingerprint {
        Fingerprint::of(&[text.as_bytes()])
    }

    #[test]
    fn what_was_said_holds_for_a_folder_and_for_a_content() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = TrustStore::under(&folder.path().join("state"));
        let root = folder.path().join("work");
        std::fs::create_dir(&root).unwrap();
        assert_eq!(ledger.record(&root), TrustRecord::default());
        let files = BTreeMap::from([("AGENTS.md".to_owned(), print("be kind"))]);
        ledger.store(&root, true, files.clone()).unwrap();
        let record = ledger.record(&root);
        assert!(record.allows("AGENTS.md", &print("be kind")));
        for (path, text) in [("AGENTS.md", "be evil"), ("src/AGENTS.md", "be kind"), ("", "")] {
            assert!(!record.allows(path, &print(text)), "{path} {text}");
        }
        // A no is remembered as a no, and for these contents only.
        ledger.store(&root, false, files).unwrap();
        let record = ledger.record(&root);
        assert!(record.has_seen("AGENTS.md", &print("be kind")) && !record.allows("AGENTS.md", &print("be kind")));
        // Another folder in the same place is another one.
        ledger.store(&root, true, BTreeMap::new()).unwrap();
        std::fs::rename(&root, folder.path().join("old")).unwrap();
        std::fs::create_dir(&root).unwrap();
        assert_eq!(ledger.record(&root), TrustRecord::default());
        assert!(!ledger.record(&folder.path().join("old")).is_trusted);
    }

    #[test]
    fn a_list_that_is_not_ours_trusts_nobody_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = TrustStore::under(folder.path());
        for text in ["", "[]", "{\"version\":2,\"workspaces\":{}}", "not json"] {
            std::fs::write(folder.path().join("trust.json"), text).unwrap();
            assert_eq!(ledger.record(folder.path()), TrustRecord::default(), "{text}");
            let refused = ledger.store(folder.path(), true, BTreeMap::new());
            assert!(matches!(refused, Err(TrustError::Foreign(_))), "{text}");
            assert_eq!(std::fs::read_to_string(folder.path().join("trust.json")).unwrap(), text);
        }
    }

    #[test]
    fn a_folder_is_guarded_while_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = TrustStore::under(&folder.path().join("state"));
        let root = folder.path().join("work");
        std::fs::create_dir(&root).unwrap();
        assert!(!ledger.is_guarded(&root));
        ledger.set_guarded(&root, true).unwrap();
        ledger.store(&root, true, BTreeMap::new()).unwrap();
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
        assert_ne!(Fingerprint::of(&[b"ab", b"c"]), Fingerprint::of(&[b"a", b"bc"]));
        assert_ne!(Fingerprint::of(&[b"ab"]), Fingerprint::of(&[b"ab", b""]));
    }
}
