//! The list of the plugins that the user has added, beside their folders.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Plugin, read};
use crate::os::file;

/// A longer list is not read.
const LIST_BYTES: u64 = 1 << 20;

/// The place that a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum PluginSource {
    Folder {
        path: PathBuf,
    },
    Git {
        url: String,
        /// A branch, a tag or a commit. `None`: the default branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
        /// The folder of the plugin in the repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
}

impl PluginSource {
    /// The place for people.
    pub fn shown(&self) -> String {
        match self {
            Self::Folder { path } => crate::config::shown_path(path),
            Self::Git { url, reference, path } => {
                let path = path.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
                let reference = reference.as_ref().map_or_else(String::new, |it| format!("#{it}"));
                format!("{url}{reference}{path}")
            }
        }
    }

    /// The name of a plugin that has none.
    pub fn last_part(&self) -> String {
        let last = |text: &str| {
            text.trim_end_matches('/')
                .rsplit(['/', ':'])
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        match self {
            Self::Folder { path } => last(&path.to_string_lossy()),
            Self::Git { path: Some(path), .. } => last(path),
            Self::Git { url, .. } => last(url),
        }
    }
}

/// A plugin that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginEntry {
    pub name: String,
    pub source: PluginSource,
    /// The commit, or a hash of the content.
    pub revision: String,
    /// A hash of the files as they were added.
    pub content: String,
}

/// The plugins that were added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginIndex {
    pub plugins: Vec<PluginEntry>,
}

impl PluginIndex {
    /// Reads the list below the folder of data. No file is an empty list.
    pub fn load(data: &Path) -> Result<Self, String> {
        match file::read(&Self::path(data), LIST_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|it| format!("{}: {it}", Self::path(data).display())),
            Err(error) if error.is_absent() => Ok(Self::default()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The file of the list.
    pub fn path(data: &Path) -> PathBuf {
        data.join("plugins.json")
    }

    /// The folder of all plugins.
    pub fn folder(data: &Path) -> PathBuf {
        data.join("plugins")
    }

    /// The plugin with this name.
    pub fn get(&self, name: &str) -> Option<&PluginEntry> {
        self.plugins.iter().find(|it| it.name == name)
    }
}

/// The plugins that the user has added, and mistakes: the name of the plugin and why it has no effect. Reads their manifests.
pub fn installed(data: &Path) -> (Vec<Plugin>, Vec<(String, String)>) {
    let index = match PluginIndex::load(data) {
        Ok(index) => index,
        Err(why) => return (Vec::new(), vec![("plugins".to_owned(), why)]),
    };
    let (mut plugins, mut problems) = (Vec::new(), Vec::new());
    for entry in index.plugins {
        match read(&PluginIndex::folder(data).join(&entry.name), &entry.name) {
            Ok(plugin) if plugin.name == entry.name => plugins.push(plugin),
            Ok(plugin) => problems.push((entry.name, format!("its folder holds `{}`", plugin.name))),
            Err(why) => problems.push((entry.name, why)),
        }
    }
    (plugins, problems)
}
