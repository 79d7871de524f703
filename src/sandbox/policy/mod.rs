//! The permissions of a command: the [`Policy`], and the tables and files from which it is made.

pub mod environment;
mod git_config;
mod git_folders;
pub mod hidden;
pub mod ignore_files;
mod look;
pub mod protected_names;
pub mod resolve;
mod roots;
mod stamp;
mod survey;
mod user_links;

use std::path::{Path, PathBuf};

pub use git_config::{globals, is_plain_module};
pub use git_folders::{Fixed, GIT_FIXED, git_folder, is_bare, is_bare_part, is_in_bare, leads_home, pointed};
pub use look::Look;
pub use roots::{Ground, Looks};
pub use survey::LookLimit;
#[cfg(test)]
pub use survey::Most;

/// Strength of the sandbox on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tier {
    /// The kernel holds all of it.
    Full,
    /// It has known gaps.
    Partial,
    /// Commands may do what the user may: each is asked for.
    #[default]
    None,
}

impl Tier {
    /// As a command finds it in `SHEAF_SANDBOX`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }

    /// Returns true if it protects by itself, without asking, what it covers in part. That of macOS was never attacked.
    pub const fn is_strict(self) -> bool {
        match self {
            Self::Full => true,
            Self::Partial => cfg!(target_os = "linux"),
            Self::None => false,
        }
    }
}

/// Permissions of one command. All paths are absolute and free of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub tier: Tier,
    /// Bubblewrap makes the namespaces and the mounts, where this program may not.
    pub wraps: bool,
    pub workspace: PathBuf,
    /// Folders that may be changed, the workspace among them unless it is only to be read.
    pub writable: Vec<PathBuf>,
    /// Parts of those that may not.
    pub read_only: Vec<PathBuf>,
    /// Paths that may not be read.
    pub hidden: Vec<PathBuf>,
    /// Folder mounted as `/tmp`. `None`: an empty one in memory.
    pub temporary: Option<PathBuf>,
    /// Folder of an overlay: its `files` are laid over the workspace, and what is written into the temporary folder goes to its
    /// `upper`. Only in the full tier, without bubblewrap.
    pub over: Option<PathBuf>,
    pub network: bool,
    pub git_write: bool,
    pub limits: ResourceLimits,
}

impl Policy {
    /// Lets a command read a folder that lies where it would have a temporary folder of its own. What is hidden stays so.
    pub fn show(&mut self, folder: PathBuf) {
        let is_open = self
            .writable
            .iter()
            .chain(&self.read_only)
            .any(|it| folder.starts_with(it));
        let Ok(folder) = folder.canonicalize() else { return };
        let is_covered = ["/tmp", "/var/tmp"]
            .iter()
            .any(|it| folder.starts_with(it) && folder != Path::new(it));
        let is_hidden = self.hidden.iter().any(|it| folder.starts_with(it));
        if is_covered && !is_open && !is_hidden {
            self.read_only.push(folder);
        }
    }
}

/// Resource limits of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceLimits {
    pub processes: u64,
    pub file_bytes: u64,
    pub open_files: u64,
    /// Size of each file system in memory, in bytes.
    pub memory_bytes: u64,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            processes: 4096,
            file_bytes: 64 << 30,
            open_files: 65_536,
            memory_bytes: 1 << 30,
        }
    }
}
