//! Where our files lie, by the rules of the platform (XDG on Linux).

use std::path::{Path, PathBuf};

/// The four folders; none needs to exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    pub config: PathBuf,
    pub data: PathBuf,
    pub state: PathBuf,
    pub cache: PathBuf,
}

impl Paths {
    /// The user's; none when there is no home.
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

    /// All four below `folder`.
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

    /// What the interface says in languages of the user's own.
    pub fn locales(&self) -> PathBuf {
        self.config.join("locale")
    }

    /// Blocks of the system prompt in the user's words.
    pub fn prompts(&self) -> PathBuf {
        self.config.join("prompts")
    }

    /// Rules that hold in every workspace.
    pub fn rules(&self) -> PathBuf {
        self.config.join("rules")
    }

    pub fn sessions(&self) -> PathBuf {
        self.data.join("sessions")
    }

    /// The settings of a workspace, read only when it is trusted.
    pub fn of_project(workspace: &Path) -> PathBuf {
        workspace.join(".sheaf").join("config.toml")
    }
}
