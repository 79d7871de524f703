//! The folders in which extensions are: those of the project, from the working folder up to the root of the repository, then
//! the user's.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::plugin::{PartKind, Plugin, installed};
use crate::{
    config::{Fingerprint, Paths, shown_path},
    os::file,
};

/// The author of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It came with the project, and has an effect only if the user trusts it.
    Project,
    User,
    /// Somebody else's, which the user has added. It has an effect and grants nothing.
    Plugin,
}

/// The folders in which extensions are looked for.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The root of the workspace; `None`: there is none.
    pub workspace: Option<PathBuf>,
    /// The folder in which the program was started. Counts only inside the workspace.
    pub directory: Option<PathBuf>,
    /// The user's folder of settings.
    pub config: Option<PathBuf>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// Plugins that the user has added.
    pub plugins: Vec<Plugin>,
}

/// A file of a project without effect, because the user has not trusted its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldFile {
    /// From the root of the workspace, or absolute.
    pub path: String,
    pub print: Fingerprint,
}

/// A folder of extensions. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub owner: Owner,
    /// The folder that its files may not leave, by links either.
    pub root: PathBuf,
    /// The folder, from `root`.
    pub path: PathBuf,
    /// What precedes the path of its files, as people and the list of trusted files see it: `""`, `sub/`, `/above/` or `~/`.
    prefix: String,
    /// The name of the plugin that it is of.
    plugin: Option<String>,
    /// The only entry that counts.
    only: Option<String>,
}

impl Surroundings {
    /// The folders of the user and of the workspace, and plugins that cannot be used: the name and why. Reads their manifests.
    pub fn of_user(workspace: Option<PathBuf>, paths: Option<&Paths>) -> (Self, Vec<(String, String)>) {
        let (plugins, problems) = paths.map(|it| installed(&it.data)).unwrap_or_default();
        let around = Self {
            workspace,
            directory: std::env::current_dir().ok(),
            config: paths.map(|it| it.config.clone()),
            home: paths.and_then(|_| std::env::home_dir()),
            plugins,
        };
        (around, problems)
    }

    /// The folders named `names` of the project, the nearest first, then those of the user: `own_name` in the folder of
    /// settings, and `names` in the home folder, where `.sheaf/…` is left out; then those of plugins.
    pub fn folders(&self, names: &[&str], own_name: &str) -> Vec<Folder> {
        let mut folders = Vec::new();
        for level in self.levels() {
            for name in names {
                folders.push(Folder {
                    owner: Owner::Project,
                    prefix: self.prefix(&level),
                    path: PathBuf::from(name),
                    root: level.clone(),
                    plugin: None,
                    only: None,
                });
            }
        }
        if let Some(config) = &self.config {
            folders.push(Folder {
                owner: Owner::User,
                root: config.clone(),
                path: PathBuf::from(own_name),
                prefix: format!("{}/", shown_path(config)),
                plugin: None,
                only: None,
            });
        }
        if let Some(home) = &self.home {
            let names = names.iter().filter(|it| !it.starts_with(".sheaf/"));
            folders.extend(names.map(|name| Folder {
                owner: Owner::User,
                root: home.clone(),
                path: PathBuf::from(name),
                prefix: format!("{}/", shown_path(home)),
                plugin: None,
                only: None,
            }));
        }
        // Who works in the home folder itself has each folder twice; it is the user's own then.
        let own: Vec<PathBuf> = folders
            .iter()
            .filter(|it| it.owner == Owner::User)
            .map(Folder::absolute)
            .collect();
        folders.retain(|it| it.owner == Owner::User || !own.contains(&it.absolute()));
        folders.extend(self.plugins.iter().flat_map(|it| of_plugin(it, own_name)));
        folders
    }

    /// The folders from the working folder up to the root of the repository.
    fn levels(&self) -> Vec<PathBuf> {
        let Some(root) = &self.workspace else {
            return Vec::new();
        };
        let inside = self.directory.as_deref().filter(|it| it.starts_with(root));
        let mut levels: Vec<PathBuf> = inside
            .unwrap_or(root)
            .ancestors()
            .take_while(|it| it.starts_with(root))
            .map(Path::to_owned)
            .collect();
        if let Some(top) = repository_above(root) {
            let above = root.ancestors().skip(1).take_while(|it| it.starts_with(&top));
            levels.extend(above.map(Path::to_owned));
        }
        levels
    }

    fn prefix(&self, level: &Path) -> String {
        let root = self.workspace.as_deref();
        match root.and_then(|it| level.strip_prefix(it).ok()) {
            Some(inner) if inner.as_os_str().is_empty() => String::new(),
            Some(inner) => format!("{}/", inner.display()),
            None => format!("{}/", level.display()),
        }
    }
}

/// The folders of a plugin that hold what is in the folder `own_name` beside the settings.
fn of_plugin(plugin: &Plugin, own_name: &str) -> Vec<Folder> {
    let kind = PartKind::of_folder(own_name);
    let parts = plugin.parts.iter().filter(|it| Some(it.kind) == kind);
    let folders = parts.map(|it| Folder {
        owner: Owner::Plugin,
        root: plugin.root.clone(),
        path: it.folder.clone(),
        prefix: plugin.prefix(),
        plugin: Some(plugin.name.clone()),
        only: it.file.clone(),
    });
    folders.collect()
}

impl Folder {
    /// The name of something in it: behind the plugin's, if it is one's.
    pub fn named(&self, name: String) -> String {
        match &self.plugin {
            Some(plugin) => format!("{plugin}:{name}"),
            None => name,
        }
    }

    /// A text of a file in it, with the folder of its plugin filled in.
    pub fn filled(&self, text: &str) -> String {
        match &self.plugin {
            Some(_) => Plugin::filled(&self.root, text),
            None => text.to_owned(),
        }
    }

    /// The folder itself.
    pub fn absolute(&self) -> PathBuf {
        self.root.join(&self.path)
    }

    /// A file of the folder, as people and the list of trusted files see it.
    pub fn shown(&self, file: &Path) -> String {
        format!("{}{}", self.prefix, self.path.join(file).display())
    }

    /// Reads a file, whose path is from the folder. A project's file may not be a link out of the project.
    pub fn read(&self, path: &Path, limit_bytes: u64) -> io::Result<String> {
        let bytes = match self.owner {
            Owner::Project | Owner::Plugin => file::read_beneath(&self.root, &self.path.join(path), limit_bytes)?,
            Owner::User => {
                let read = file::read(&self.absolute().join(path), limit_bytes);
                read.map_err(|it| io::Error::other(it.to_string()))?
            }
        };
        String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// The names of the entries of a folder below it, sorted; with true for folders. Links out of a project are left out.
    pub fn entries(&self, below: &Path, most: usize) -> Vec<(String, bool)> {
        let folder = self.absolute().join(below);
        let is_inside = |path: &Path| match self.owner {
            Owner::User => true,
            Owner::Project | Owner::Plugin => {
                let (root, path) = (self.root.canonicalize(), path.canonicalize());
                root.ok()
                    .zip(path.ok())
                    .is_some_and(|(root, path)| path.starts_with(root))
            }
        };
        if !is_inside(&folder) {
            return Vec::new();
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().take(most);
        let mut found: Vec<(String, bool)> = entries
            .filter_map(|it| {
                let name = it.file_name().into_string().ok()?;
                let is_link = it.file_type().ok()?.is_symlink();
                let path = it.path();
                (!is_link || is_inside(&path)).then(|| (name, path.is_dir()))
            })
            .collect();
        if let (Some(only), true) = (&self.only, below.as_os_str().is_empty()) {
            found.retain(|it| it.0 == *only);
        }
        found.sort();
        found
    }
}

/// The root of the repository that the workspace is a folder of. It must be the same user's: in a shared folder anybody could
/// lay a repository around us.
pub fn repository_above(root: &Path) -> Option<PathBuf> {
    if root.join(".git").exists() {
        return None;
    }
    let above = root.ancestors().skip(1).find(|it| it.join(".git").exists())?;
    is_same_owner(root, above).then(|| above.to_owned())
}

#[cfg(unix)]
fn is_same_owner(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = |it: &Path| it.metadata().ok().map(|it| it.uid());
    owner(one).is_some() && owner(one) == owner(other)
}

#[cfg(not(unix))]
fn is_same_owner(_: &Path, _: &Path) -> bool {
    false
}

#[cfg(test)]
impl Surroundings {
    /// The folders `work`, `config` and `home` below `top`, with these files in them.
    pub fn test(top: &Path, files: &[(&str, &str)]) -> Self {
        for (path, text) in files {
            let path = top.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::create_dir_all(top.join("work/.git")).unwrap();
        Self {
            workspace: Some(top.join("work")),
            directory: None,
            config: Some(top.join("config")),
            home: Some(top.join("home")),
            plugins: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_folder_comes_first_and_the_users_last() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("repository/part");
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::create_dir_all(top.path().join("repository/.git")).unwrap();
        let around = Surroundings {
            workspace: Some(root.clone()),
            directory: Some(root.join("src/deep")),
            config: Some(top.path().join("config")),
            home: Some(top.path().join("home")),
            plugins: Vec::new(),
        };
        let base = top.path().display().to_string();
        let shown = |around: &Surroundings| -> Vec<String> {
            let folders = around.folders(&[".sheaf/skills", ".claude/skills"], "skills");
            folders
                .iter()
                .map(|it| it.shown(Path::new("x")).replace(&base, ""))
                .collect()
        };
        let user = ["/config/skills/x", "/home/.claude/skills/x"];
        let project = [
            "src/deep/.sheaf/skills/x",
            "src/deep/.claude/skills/x",
            "src/.sheaf/skills/x",
            "src/.claude/skills/x",
            ".sheaf/skills/x",
            ".claude/skills/x",
            "/repository/.sheaf/skills/x",
            "/repository/.claude/skills/x",
        ];
        assert_eq!(shown(&around), [&project[..], &user[..]].concat());
        // Somewhere else is no place of the project.
        let elsewhere = Surroundings {
            directory: Some(top.path().join("home")),
            ..around.clone()
        };
        assert_eq!(shown(&elsewhere)[..2], project[4..6]);
        let nowhere = Surroundings {
            workspace: None,
            ..around
        };
        assert_eq!(shown(&nowhere), user);
    }

    #[test]
    fn who_works_at_home_has_each_folder_once() {
        let home = tempfile::tempdir().unwrap();
        let around = Surroundings {
            workspace: Some(home.path().to_owned()),
            home: Some(home.path().to_owned()),
            ..Surroundings::default()
        };
        let owners: Vec<Owner> = around
            .folders(&[".sheaf/skills", ".claude/skills"], "skills")
            .iter()
            .map(|it| it.owner)
            .collect();
        assert_eq!(owners, [Owner::Project, Owner::User]);
    }
}
