//! Folders and files of the program, by the rules of the platform (XDG on Linux).

use std::path::{Path, PathBuf};

/// The four base folders. They need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Settings, keymap, themes and other files that the user writes.
    pub config: PathBuf,
    /// Sessions.
    pub data: PathBuf,
    /// Trust, tokens and other files that the program writes.
    pub state: PathBuf,
    /// Files that may be deleted at any time.
    pub cache: PathBuf,
}

/// Formats a path for people: below the home folder it begins with `~`.
pub fn shown_path(path: &Path) -> String {
    let inner = std::env::home_dir().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    inner.map_or_else(|| path.display().to_string(), |it| format!("~/{}", it.display()))
}

impl Paths {
    /// Returns the user's folders; `None` without a home folder.
    pub fn of_user() -> Option<Self> {
        let folders = directories::ProjectDirs::from("", "", "sheaf")?;
        let data = folders.data_dir().to_owned();
        Some(Self {
            config: folders.config_dir().to_owned(),
            state: folders.state_dir().map_or_else(|| data.join("state"), Path::to_owned),
            cache: folders.cache_dir().to_owned(),
            data,
        })
    }

    /// Returns four folders below `folder`, for tests.
    pub fn under(folder: &Path) -> Self {
        Self {
            config: folder.join("config"),
            data: folder.join("data"),
            state: folder.join("state"),
            cache: folder.join("cache"),
        }
    }

    pub fn settings(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    pub fn keymap(&self) -> PathBuf {
        self.config.join("keymap.toml")
    }

    pub fn themes(&self) -> PathBuf {
        self.config.join("themes")
    }

    /// Folder of the user's translations.
    pub fn locales(&self) -> PathBuf {
        self.config.join("locale")
    }

    /// Folder of the user's blocks of the system prompt.
    pub fn prompts(&self) -> PathBuf {
        self.config.join("prompts")
    }

    /// Folder of the user's rules for all workspaces.
    pub fn rules(&self) -> PathBuf {
        self.config.join("rules")
    }

    /// Folder of the keys that `sheaf login` stored: a file per provider.
    pub fn keys(&self) -> PathBuf {
        self.state.join("keys")
    }

    /// Folder of files without a name, which go with the program: texts that are too long for memory.
    pub fn scratch(&self) -> PathBuf {
        self.state.join("scratch")
    }

    pub fn sessions(&self) -> PathBuf {
        self.data.join("sessions")
    }

    /// Path of a workspace's settings. They have an effect only if it is trusted.
    pub fn of_project(workspace: &Path) -> PathBuf {
        workspace.join(".sheaf").join("config.toml")
    }
}
