//! The folders of a conversation, as one look found them: everything that a command's policy, and the comparison after the
//! command, must know of the disk.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{
    hidden::Secrets,
    protected_names as name,
    resolve::follow,
    survey::{LookLimit, Survey},
};

/// Folders that a link never hides or protects, nor any above: programs need them.
const SHARED: [&str; 5] = ["/tmp", "/var/tmp", "/dev", "/proc", "/sys"];

/// Result of a look at all folders of a conversation.
#[derive(Debug, Default)]
pub struct Look {
    /// By folder, in the order of the conversation's folders.
    pub surveys: Vec<(PathBuf, Survey)>,
    pub links: Vec<Link>,
    /// Paths in the folders that decide what runs, whatever they are called: because git's configuration or a protected link
    /// names them. Those that are there.
    pub named: BTreeSet<PathBuf>,
    /// Those that are not.
    pub missing: BTreeSet<PathBuf>,
    /// Secrets outside of the folders.
    pub elsewhere: Vec<PathBuf>,
    /// Git's folders outside of the conversation's that the permission `git_write` opens.
    pub git_elsewhere: BTreeSet<PathBuf>,
    /// Not all was found that git's configuration names, or that the user's settings hide.
    pub is_configuration_partial: bool,
    /// Not all links in the folders of the user's settings were found.
    pub is_user_partial: bool,
}

/// A link by which its target is hidden or protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Itself, and the links that it leads through: another one in the place of any leads elsewhere.
    pub links: Vec<PathBuf>,
    /// Free of links. It need not exist.
    pub target: PathBuf,
    pub is_hidden: bool,
}

impl Link {
    /// Reads a link. `None`: it leads nowhere, or to what is not the link's to hide or protect: what holds a folder of the
    /// conversation or of the system's, or, to be hidden, a folder elsewhere.
    pub fn read(path: &Path, is_hidden: bool, roots: &[PathBuf]) -> Option<Self> {
        let (target, links) = follow(path).ok()?;
        let mut kept = roots.iter().map(PathBuf::as_path).chain(SHARED.map(Path::new));
        let is_above = kept.any(|it| it.starts_with(&target));
        let is_inside = || roots.iter().any(|it| target.starts_with(it));
        let is_meant = !is_above && (!is_hidden || is_inside() || target.is_file());
        is_meant.then_some(Self {
            links,
            target,
            is_hidden,
        })
    }

    /// The links at the top of the folders, which are found without going through all that is in them.
    pub fn glance(roots: &[PathBuf], secrets: &Secrets) -> Vec<Self> {
        let entries = roots
            .iter()
            .flat_map(|it| fs::read_dir(it).into_iter().flatten().flatten());
        let links = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_symlink()));
        links
            .filter_map(|it| {
                let is_hidden = secrets.cover(&it.path(), false);
                let is_meant = is_hidden || name::is_protected(Path::new(&it.file_name()));
                is_meant.then(|| Self::read(&it.path(), is_hidden, roots)).flatten()
            })
            .collect()
    }
}

impl Look {
    /// The first limit that was reached. `None`: everything was seen.
    pub fn limit(&self) -> Option<LookLimit> {
        let of_configuration = self.is_configuration_partial.then_some(LookLimit::Configuration);
        let of_user = self.is_user_partial.then_some(LookLimit::Settings);
        let of_folders = self.surveys.iter().find_map(|it| it.1.limit);
        of_folders.or(of_configuration).or(of_user)
    }

    /// Returns true if a path, or a folder on the way to it, decides what runs because something names it.
    pub fn is_named(&self, path: &Path) -> bool {
        path.ancestors()
            .any(|it| self.named.contains(it) || self.missing.contains(it))
    }

    /// Returns the paths that are protected and there.
    pub fn protected(&self) -> BTreeSet<PathBuf> {
        let found = self.surveys.iter().flat_map(|it| &it.1.protected);
        found.chain(&self.named).cloned().collect()
    }

    /// Git's folders, and the files that stand for them, in the folders of the conversation.
    pub fn repositories(&self) -> impl Iterator<Item = &PathBuf> {
        let protected = self.surveys.iter().flat_map(|it| &it.1.protected);
        protected.filter(|it| it.file_name().is_some_and(name::is_git))
    }

    /// Returns true if there may be protected names that were not seen, beside those in closed folders.
    pub fn lacks_names(&self) -> bool {
        self.surveys
            .iter()
            .any(|it| it.1.limit.is_some_and(LookLimit::hides_names))
    }

    /// Returns true if a path is protected because of its name.
    pub fn has_by_name(&self, path: &Path) -> bool {
        let mut found = self.surveys.iter().map(|it| &it.1.protected);
        found.any(|it| it.binary_search_by(|it| it.as_path().cmp(path)).is_ok())
    }

    /// Returns true if it is certain that nothing was at a path when this was looked at, which `later` found protected.
    pub fn lacks(&self, path: &Path, later: &Self) -> bool {
        self.missing.contains(path) || (later.has_by_name(path) && self.surveys.iter().any(|it| it.1.lacks(path)))
    }

    /// Returns true if a path lies in a folder that git ignores, or in one of packages that others wrote.
    pub fn is_of_others(&self, path: &Path, later: &Self) -> bool {
        self.surveys
            .iter()
            .zip(&later.surveys)
            .any(|((root, before), (_, after))| {
                let folder = path.strip_prefix(root).ok().and_then(Path::parent);
                folder.is_some_and(|it| name::is_vendored(it) || before.is_ignored(path, after))
            })
    }

    /// Returns true if a folder was listed.
    pub fn has_folder(&self, path: &Path) -> bool {
        self.surveys.iter().any(|it| it.1.has_folder(path))
    }

    /// Folders that could be looked into, or were not there, and cannot be looked into in `later`.
    pub fn closed_since(&self, later: &Self) -> Vec<PathBuf> {
        let closed =
            |it: &Self| -> BTreeSet<PathBuf> { it.surveys.iter().flat_map(|it| it.1.closed.clone()).collect() };
        closed(later).difference(&closed(self)).cloned().collect()
    }
}
