//! The policy for the folders of a conversation, computed from the disk when a command starts.
//!
//! | what | for a command |
//! | --- | --- |
//! | the workspace and added folders | to be written |
//! | git's own folder; what runs or decides what runs | to be read |
//! | files that git ignores and that are there already | to be read; folders that git ignores are build output |
//! | secrets, and what our ignore files name | not even to be read |
//!
//! With `git_write` git's folder may be written but for its hooks and its configuration, by which code would be planted.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

#[cfg(test)]
use super::survey::Most;
use super::{
    Policy, ResourceLimits, Tier,
    git_config::{NamedFiles, Repository},
    git_folders::{Fixed, links as git_links, openable, pointed},
    hidden::Secrets,
    look::{Link, Look},
    protected_names as name,
    resolve::resolve,
    survey::{LookLimit, Survey, Surveys},
    user_links::user_links,
};
use crate::{protocol::Permission, text::WordList};

/// Accounts of the machine's, which its administrator can read without any capability.
const OF_THE_MACHINE: WordList = WordList("/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers");
/// Maximum number of entries of a folder of hooks elsewhere that are looked at.
const MOST_ELSEWHERE: usize = 20_000;
/// The folders of a conversation, as commands see them.
#[derive(Clone, Debug)]
pub struct Ground {
    pub root: PathBuf,
    pub more: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    pub secrets: Secrets,
    /// This program's folders, free of links. They are protected wherever they are.
    pub own: Vec<PathBuf>,
    /// Git's files for all repositories, whether they exist or not. The same.
    pub globals: Vec<PathBuf>,
    /// Git's folders that the `.git` of the folders stood for when the conversation began.
    pub recorded: Vec<PathBuf>,
    pub looks: Looks,
}

/// The looks at the folders of a conversation, shared by all who work in them.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    surveys: Surveys,
    named: NamedFiles,
    /// Held while the first look is made.
    first: Arc<Mutex<()>>,
    last: Arc<RwLock<Last>>,
}

/// What is known without a new look.
#[derive(Debug, Default)]
struct Last {
    look: Option<Arc<Look>>,
    /// Those of the look, or those at the top of the folders before there is one. `None` until somebody asks.
    links: Option<Arc<[Link]>>,
}

impl Ground {
    /// A folder of which nothing is known.
    #[cfg(test)]
    pub fn bare(root: &Path) -> Self {
        let root = root.canonicalize().unwrap();
        Self {
            secrets: Secrets::new(&root, None, &[]),
            root,
            more: Vec::new(),
            home: None,
            own: Vec::new(),
            globals: Vec::new(),
            recorded: Vec::new(),
            looks: Looks::default(),
        }
    }

    /// The same, of which so much is looked at.
    #[cfg(test)]
    pub fn limited(root: &Path, most: Most) -> Self {
        let mut ground = Self::bare(root);
        ground.looks.surveys = Surveys::limited(most);
        ground
    }

    /// Does something while nobody can look.
    #[cfg(test)]
    pub fn hold_up<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        self.looks.surveys.hold_up(meanwhile)
    }

    /// The workspace and the folders that the user added.
    pub fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.root).chain(&self.more)
    }

    /// Looks at all folders of the conversation. May take seconds: work is proportional to the folders in them.
    pub fn look(&self) -> Arc<Look> {
        let survey = |root: &PathBuf| (root.clone(), self.looks.surveys.look(root, &self.secrets));
        let surveys: Vec<_> = self.roots().map(survey).collect();
        let roots: Vec<PathBuf> = self.roots().cloned().collect();
        let nested = surveys.iter().flat_map(|it| &it.1.protected);
        let nested: Vec<&PathBuf> = nested.filter(|it| it.file_name().is_some_and(name::is_git)).collect();
        let opened = nested.iter().flat_map(|it| openable(it, &roots, &self.recorded));
        let git_elsewhere: BTreeSet<PathBuf> = opened.filter(|it| !self.is_inside(it)).collect();
        let repositories = nested
            .into_iter()
            .map(|it| Repository::of(it))
            .chain(self.repositories());
        let of_git = self.of_git(&repositories.collect());
        let hidden = surveys.iter().flat_map(|it| &it.1.hidden_links);
        let mut links: Vec<_> = hidden.filter_map(|it| Link::read(it, true, &roots)).collect();
        let by_name = surveys.iter().flat_map(|it| &it.1.protected_links);
        let (of_user, is_user_partial) = user_links(&self.own, self.home.as_deref());
        let seeds = by_name.chain(&of_git.paths).cloned().chain(of_user);
        let (kept, is_elsewhere_cut) = self.links_from(seeds.collect(), &surveys);
        let mut named = of_git.paths;
        named.extend(self.globals.iter().cloned());
        // A link is held by itself, and what it leads to is named.
        named.retain(|it| self.is_nameable(it, &git_elsewhere) && is_plain(it));
        let led = kept.iter().map(|it| &it.target);
        let led = led.filter(|it| self.is_nameable(it, &git_elsewhere));
        named.extend(led.cloned());
        links.extend(kept);
        let (named, missing): (BTreeSet<_>, BTreeSet<_>) =
            named.into_iter().partition(|it| fs::symlink_metadata(it).is_ok());
        let (elsewhere, is_elsewhere_partial) = self.secrets_elsewhere();
        let look = Arc::new(Look {
            surveys,
            links,
            named,
            missing,
            elsewhere,
            git_elsewhere,
            is_configuration_partial: of_git.is_partial || is_elsewhere_cut || is_elsewhere_partial,
            is_user_partial,
        });
        if let Some(limit) = look.limit() {
            tracing::warn!(?limit, "not every file that should be protected was found");
        }
        *self.looks.last.write().unwrap_or_else(PoisonError::into_inner) = Last {
            links: Some(look.links.as_slice().into()),
            look: Some(Arc::clone(&look)),
        };
        look
    }

    /// Looks at the folders unless that was done before.
    pub fn look_once(&self) {
        let first = self.looks.first.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = self.looks.last.read().is_ok_and(|it| it.look.is_some());
        if !is_known {
            self.look();
        }
        drop(first);
    }

    /// The links that the last look found. Before the first one: those at the top of the folders and of their repositories.
    fn links(&self) -> Arc<[Link]> {
        let known = self.looks.last.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(links) = &known.links {
            return Arc::clone(links);
        }
        drop(known);
        let roots: Vec<PathBuf> = self.roots().cloned().collect();
        let mut links = Link::glance(&roots, &self.secrets);
        let of_git = self.of_git(&self.repositories().collect());
        let (of_user, _) = user_links(&self.own, self.home.as_deref());
        let seeds = of_git.paths.into_iter().chain(of_user);
        links.extend(self.links_from(seeds.collect(), &[]).0);
        let mut last = self.looks.last.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(last.links.get_or_insert_with(|| links.into()))
    }

    /// The links by which what decides what runs lies elsewhere: those on the ways to `open`, those in it, and those where these
    /// lead. True if not all were found.
    fn links_from(&self, mut open: Vec<PathBuf>, surveys: &[(PathBuf, Survey)]) -> (Vec<Link>, bool) {
        let roots: Vec<PathBuf> = self.roots().cloned().collect();
        let (mut found, mut seen, mut is_cut) = (Vec::new(), BTreeSet::new(), false);
        while let Some(path) = open.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let Some(link) = Link::read(&path, false, &roots) else {
                continue;
            };
            if !link.links.is_empty() {
                open.push(link.target.clone());
                found.push(link);
            } else if self.is_inside(&path) {
                open.extend(surveys.iter().flat_map(|it| it.1.links_in(&path)));
            } else {
                let (links, is_more) = links_at(&path);
                is_cut |= is_more;
                open.extend(links);
            }
        }
        (found, is_cut)
    }

    /// Returns true if a link that was there in the last look leads to a path, or to a folder on the way, by which it is hidden
    /// or else protected.
    pub fn is_led_to(&self, path: &Path, is_hidden: bool) -> bool {
        let links = self.links();
        let mut links = links.iter().filter(|it| it.is_hidden == is_hidden);
        links.any(|it| path.starts_with(&it.target))
    }

    /// The targets of links by which they are hidden, as the last look found them.
    pub fn hidden_targets(&self) -> Vec<PathBuf> {
        let links = self.links();
        let hidden = links.iter().filter(|it| it.is_hidden);
        hidden.map(|it| it.target.clone()).collect()
    }

    /// Returns the limit that the last look reached. `None`: it saw everything. Does not look itself.
    pub fn limit_reached(&self) -> Option<LookLimit> {
        let last = self.looks.last.read().unwrap_or_else(PoisonError::into_inner);
        last.look.as_ref().and_then(|it| it.limit())
    }

    /// Returns true if this program's folders, or git's files for all repositories, hold a path.
    pub fn is_kept(&self, path: &Path) -> bool {
        self.own.iter().chain(&self.globals).any(|it| path.starts_with(it))
    }

    /// Returns true if one of this program's folders is among those that commands work in.
    pub fn holds_own(&self) -> bool {
        self.own.iter().any(|it| self.is_inside(it))
    }

    /// Returns true if a path is one of the conversation's folders or in one.
    pub fn is_inside(&self, path: &Path) -> bool {
        self.roots().any(|root| path.starts_with(root))
    }

    /// The repositories of the folders of the conversation, whether they exist or not, and those that git finds from there, whose
    /// tops may be above.
    fn repositories(&self) -> impl Iterator<Item = Repository> {
        let own = self.roots().map(|it| Repository::of(&it.join(".git")));
        own.chain(self.roots().filter_map(|it| Repository::around(it)))
    }

    /// What repositories say decides what git runs, wherever it lies: the paths that their configuration names, and the links in
    /// their own folders.
    fn of_git(&self, repositories: &BTreeSet<Repository>) -> OfGit {
        let mut of_git = self.named_by_git(repositories);
        for repository in repositories {
            let (links, is_cut) = git_links(&repository.git);
            of_git.paths.extend(links);
            of_git.is_partial |= is_cut;
        }
        of_git
    }

    /// The paths that the configuration of repositories names, without folders that hold one of the conversation's.
    fn named_by_git(&self, repositories: &BTreeSet<Repository>) -> OfGit {
        let mut of_git = OfGit::default();
        for repository in repositories {
            let named = self.looks.named.look(repository, self.home.as_deref());
            let paths = named.paths.iter().filter(|it| !self.holds_root(it));
            of_git.paths.extend(paths.cloned());
            of_git.is_partial |= named.is_partial;
        }
        of_git
    }

    /// Returns true for a path that something may name as what decides what runs, and that a command may write: in the folders
    /// of the conversation, or in git's folders `elsewhere`, which the permission `git_write` opens.
    fn is_nameable(&self, path: &Path, elsewhere: &BTreeSet<PathBuf>) -> bool {
        let is_of_git = || is_in(path, elsewhere) && !elsewhere.contains(path);
        // A folder that holds a root is nobody's to protect.
        (self.is_inside(path) || is_of_git()) && !self.holds_root(path)
    }

    /// Returns true if git's configuration names a path of the conversation's folders, or a folder on the way to it: that of the
    /// repositories around the folders as it is now, that of others as it was in the last look.
    pub fn is_named_by_git(&self, path: &Path) -> bool {
        if !self.is_inside(path) {
            return false;
        }
        let last = self.looks.last.read().unwrap_or_else(PoisonError::into_inner);
        last.look.as_ref().is_some_and(|it| it.is_named(path))
            || self
                .named_by_git(&self.repositories().collect())
                .paths
                .iter()
                .any(|it| self.is_nameable(it, &BTreeSet::new()) && path.starts_with(it))
    }

    /// Lets a program write further folders, outside of the workspace.
    ///
    /// A folder above the workspace would open what is closed in it; secrets stay hidden wherever they are.
    pub fn grant(&self, folders: &[PathBuf], policy: &mut Policy) {
        let is_above = |it: &PathBuf| self.roots().any(|root| root.starts_with(it));
        let is_own = |it: &PathBuf| self.own.iter().any(|own| it.starts_with(own));
        let granted = folders
            .iter()
            .filter(|it| !self.is_inside(it) && !is_above(it) && !is_own(it) && it.is_dir());
        for folder in granted {
            let own = self.own.iter().filter(|it| it.starts_with(folder) && it.exists());
            policy.read_only.extend(own.cloned());
            policy.writable.push(folder.clone());
        }
    }

    /// The policy for a command that begins now, after `look`. `temporary` becomes `/tmp`. What is only looked at may not be
    /// written at all.
    pub fn policy(
        &self,
        look: &Look,
        tier: Tier,
        permissions: &[Permission],
        only_reads: bool,
        temporary: Option<&Path>,
    ) -> Policy {
        let git_write = permissions.contains(&Permission::GitWrite);
        let mut policy = Policy {
            tier,
            wraps: false,
            workspace: self.root.clone(),
            writable: Vec::new(),
            read_only: Vec::new(),
            hidden: look.elsewhere.clone(),
            temporary: temporary.map(Path::to_owned),
            over: None,
            network: permissions.contains(&Permission::Network),
            git_write,
            limits: ResourceLimits::default(),
        };
        for (_, survey) in &look.surveys {
            policy.hidden.extend(survey.hidden.iter().cloned());
            let closed = survey.closed.iter().filter(|it| !self.holds_root(it));
            policy.hidden.extend(closed.cloned());
        }
        let hidden = look.links.iter().filter(|it| it.is_hidden && it.target.exists());
        policy.hidden.extend(hidden.map(|it| it.target.clone()));
        // A folder of the conversation in what is hidden in another one stays hidden.
        let is_open = |it: &&PathBuf| !policy.hidden.iter().any(|hidden| it.starts_with(hidden));
        let roots: Vec<PathBuf> = self.roots().filter(is_open).cloned().collect();
        if only_reads {
            // It may lie below a folder that is covered.
            policy.read_only.extend(roots);
            return policy;
        }
        policy.writable.extend(roots);
        let opened = if git_write { self.opened(look) } else { BTreeSet::new() };
        for path in look.protected() {
            policy.read_only.extend(pointed(&path));
            policy.read_only.push(path);
        }
        policy.read_only.retain(|it| !opened.contains(it));
        policy
            .writable
            .extend(opened.iter().filter(|it| !self.is_inside(it)).cloned());
        let fixed = opened.iter().flat_map(|it| Fixed::of(it).paths);
        policy
            .read_only
            .extend(fixed.filter(|it| fs::symlink_metadata(it).is_ok() && !opened.contains(it)));
        // What lies in a folder that is held needs not be held again: bubblewrap could not.
        let held: BTreeSet<PathBuf> = policy.read_only.iter().cloned().collect();
        let is_top = |it: &Path| self.roots().any(|root| root == it) || look.git_elsewhere.contains(it);
        let is_writable = |it: &Path| self.is_inside(it) || is_in(it, &look.git_elsewhere);
        let is_held = |it: &Path| {
            let mut above = it.ancestors().skip(1).take_while(|it| is_writable(it));
            let nearest = above.find(|it| held.contains(*it) || is_top(it));
            nearest.is_some_and(|it| held.contains(it))
        };
        let links = look.links.iter().flat_map(|it| &it.links);
        let links = links.filter(|it| is_writable(it) && !is_held(it));
        policy.read_only.extend(links.cloned());
        for (root, survey) in &look.surveys {
            policy.read_only.extend(survey.ignored.iter().cloned());
            let kept = self.own.iter().chain(&self.globals);
            let kept = kept.filter(|it| it.starts_with(root) || root.starts_with(it));
            policy.read_only.extend(kept.filter(|it| it.exists()).cloned());
        }
        policy.read_only.sort();
        policy.read_only.dedup();
        policy
    }

    /// Names that mean something as soon as they exist, whether they do or not.
    pub fn meaningful(&self, look: &Look, git_write: bool) -> Vec<PathBuf> {
        let opened = if git_write { self.opened(look) } else { BTreeSet::new() };
        let names = self
            .roots()
            .flat_map(|root| name::top_folders().map(|it| root.join(it)));
        // A link that leads nowhere yet: whoever makes what it leads to fills what it is called.
        let led = look.links.iter().filter(|it| !it.is_hidden).map(|it| &it.target);
        let missing = led.chain(&self.own).filter_map(|it| first_missing(it));
        names
            .chain(opened.iter().flat_map(|it| Fixed::of(it).folders()))
            .chain(missing.filter(|it| self.is_inside(it) || (git_write && is_in(it, &look.git_elsewhere))))
            .collect()
    }

    /// Git's folders that `git_write` opens.
    pub fn opened(&self, look: &Look) -> BTreeSet<PathBuf> {
        let roots: Vec<PathBuf> = self.roots().cloned().collect();
        let protected = look.protected();
        let gits = protected.iter().filter(|it| it.file_name().is_some_and(name::is_git));
        gits.flat_map(|it| openable(it, &roots, &self.recorded)).collect()
    }

    /// Notes which folders of git's the folders' own `.git` files stand for.
    pub fn record(&mut self) {
        self.recorded = self.roots().flat_map(|it| pointed(&it.join(".git"))).collect();
    }

    /// Returns true if a path is, or holds, one of the conversation's folders.
    fn holds_root(&self, path: &Path) -> bool {
        self.roots().any(|root| root.starts_with(path))
    }

    /// Secrets beside the workspace that are there, and true if not all were found.
    fn secrets_elsewhere(&self) -> (Vec<PathBuf>, bool) {
        let mut found: Vec<PathBuf> = OF_THE_MACHINE.iter().map(PathBuf::from).collect();
        found.extend(self.secrets.doors());
        let (at_home, is_partial) = self.secrets.at_home();
        found.extend(at_home);
        found.retain(|it| fs::symlink_metadata(it).is_ok());
        // A door is often reached by two names, one of which is a link.
        let mut found: Vec<_> = found.into_iter().map(|it| resolve(&it).unwrap_or(it)).collect();
        found.sort();
        found.dedup();
        // The folders that a command works in stay open, whatever they are called.
        found.retain(|it| !self.holds_root(it));
        (found, is_partial)
    }
}

/// What decides what git runs.
#[derive(Debug, Default)]
struct OfGit {
    /// Absolute, whether they exist or not, in the folders of the conversation and elsewhere.
    paths: Vec<PathBuf>,
    is_partial: bool,
}

/// The links in a folder outside of the conversation's, without those further down, and true if not all were looked at.
fn links_at(folder: &Path) -> (Vec<PathBuf>, bool) {
    let mut entries = fs::read_dir(folder).into_iter().flatten();
    let seen: Vec<_> = entries.by_ref().take(MOST_ELSEWHERE).flatten().collect();
    let links = seen.iter().filter(|it| it.file_type().is_ok_and(|it| it.is_symlink()));
    (links.map(fs::DirEntry::path).collect(), entries.next().is_some())
}

/// Returns true if a path is one of `folders` or in one.
fn is_in(path: &Path, folders: &BTreeSet<PathBuf>) -> bool {
    !folders.is_empty() && path.ancestors().any(|it| folders.contains(it))
}

/// Returns true if a path is no link, and there is none on the way.
fn is_plain(path: &Path) -> bool {
    match resolve(path) {
        Ok(resolved) => resolved == path,
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    }
}

/// The first part of a path that does not exist.
fn first_missing(path: &Path) -> Option<PathBuf> {
    let mut missing = None;
    for part in path.ancestors() {
        if fs::symlink_metadata(part).is_ok() {
            break;
        }
        missing = Some(part.to_owned());
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    struct Bench {
        _folder: tempfile::TempDir,
        ground: Ground,
    }

    fn bench(files: &[&str]) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, home) = (base.join("work"), base.join("home"));
        for path in [&root, &home] {
            fs::create_dir(path).unwrap();
        }
        for file in files {
            let (path, text) = file.split_once('=').unwrap_or((file, ""));
            let path = base.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace(';', "\n")).unwrap();
        }
        let secrets = Secrets::new(&root, Some(&home), &["~/notes".to_owned()]);
        let ground = Ground {
            root,
            more: Vec::new(),
            home: Some(home),
            secrets,
            own: Vec::new(),
            globals: Vec::new(),
            recorded: Vec::new(),
            looks: Looks::default(),
        };
        Bench {
            _folder: folder,
            ground,
        }
    }

    impl Bench {
        fn policy(&self, permissions: &[Permission]) -> Policy {
            self.ground
                .policy(&self.ground.look(), Tier::Full, permissions, false, None)
        }

        /// Paths below the bench, sorted.
        fn shown(&self, paths: &[PathBuf]) -> Vec<String> {
            let base = self.ground.root.parent().unwrap();
            let mut shown: Vec<_> = paths
                .iter()
                .filter_map(|it| it.strip_prefix(base).ok())
                .map(|it| it.to_string_lossy().into_owned())
                .collect();
            shown.sort();
            shown
        }
    }

    #[test]
    fn what_is_protected_ignored_and_hidden_is_found() {
        let bench = bench(&[
            "work/.git/HEAD",
            "work/.gitignore=*.log;target/;local.toml",
            "work/.sheafignore=private/",
            "work/.env=KEY=1",
            "work/src/main.rs",
            "work/local.toml",
            "work/run.log",
            "work/src/.vscode/tasks.json",
            "work/target/debug/app",
            "work/target/.env",
            "work/private/plan.md",
            "work/sub/.git/config",
            "work/.cursor/mcp.json",
            "work/.cursor/.env",
            "work/deep/id_rsa",
            "home/.ssh/id_x",
            "home/.aws/credentials",
            "home/.config/gh/hosts.yml",
            "home/.config/other/x",
            "home/.bashrc",
            "home/notes/a",
        ]);
        let policy = bench.policy(&[]);
        assert_eq!(bench.shown(&policy.writable), ["work"]);
        assert_eq!(
            bench.shown(&policy.read_only),
            [
                "work/.cursor",
                "work/.git",
                "work/.sheafignore",
                "work/local.toml",
                "work/run.log",
                "work/src/.vscode",
                "work/sub/.git",
            ]
        );
        assert_eq!(
            bench.shown(&policy.hidden),
            [
                "home/.aws",
                "home/.config/gh",
                "home/.ssh",
                "home/notes",
                "work/.cursor/.env",
                "work/.env",
                "work/deep/id_rsa",
                "work/private",
                "work/target/.env",
            ]
        );
    }

    #[test]
    fn a_rule_that_is_added_holds_for_the_next_command() {
        let bench = bench(&["work/notes/a.md", "work/src/b.rs", "home/diary/today"]);
        // The folders have been looked at and have not changed since.
        assert_eq!(bench.shown(&bench.policy(&[]).hidden), Vec::<String>::new());
        bench
            .ground
            .secrets
            .deny(&["notes/**".to_owned(), "~/diary/**".to_owned()]);
        assert_eq!(bench.shown(&bench.policy(&[]).hidden), ["home/diary", "work/notes"]);
        bench.ground.secrets.deny(&[]);
        assert_eq!(bench.shown(&bench.policy(&[]).hidden), Vec::<String>::new());
    }

    #[test]
    fn names_count_at_every_depth_and_in_every_folder() {
        let mut bench = bench(&[
            "work/.gitignore=built/",
            "work/built/a/b/c/d/.env",
            "work/built/a/b/c/d/.vscode/tasks.json",
            "work/built/node_modules/x/.travis.yml",
            "work/built/node_modules/x/.env",
            "work/venv/site-packages/certifi/cacert.pem",
            "work/built/node_modules/x/test/server.key",
            "work/a/b/c/d/e/.cargo/config.toml",
            "work/.git/config=[core];hooksPath = tools/hooks",
            "work/tools/hooks/pre-commit",
            "more/.codex/config.toml",
            "more/x/.env",
            "home/.codex/auth.json",
            "home/.config/Slack/x",
            "home/.zsh_history",
            "home/.m2/settings.xml",
            "home/.electrum/wallets/x",
            "home/.thunderbird/x",
            "home/.config/nvim/init.lua",
        ]);
        bench.ground.more = vec![bench.ground.root.parent().unwrap().join("more")];
        for _ in 0..2 {
            let policy = bench.policy(&[]);
            assert_eq!(
                bench.shown(&policy.read_only),
                [
                    "more/.codex",
                    "work/.git",
                    "work/a/b/c/d/e/.cargo/config.toml",
                    "work/built/a/b/c/d/.vscode",
                    "work/tools/hooks",
                ]
            );
            assert_eq!(
                bench.shown(&policy.hidden),
                [
                    "home/.codex/auth.json",
                    "home/.config/Slack",
                    "home/.electrum",
                    "home/.m2/settings.xml",
                    "home/.thunderbird",
                    "home/.zsh_history",
                    "more/x/.env",
                    "work/built/a/b/c/d/.env",
                    "work/built/node_modules/x/.env",
                ]
            );
        }
    }

    #[test]
    fn git_may_be_written_but_for_what_runs() {
        let mut bench = bench(&[
            "work/.git/HEAD",
            "work/.git/config",
            "work/.git/hooks/pre-commit",
            "work/.git/info/attributes",
            "work/.git/objects/x",
            "work/.git/modules/lib/config",
            "work/.git/modules/lib/hooks/x",
            "work/.git/modules/third/party/lib/HEAD",
            "work/.git/modules/third/party/lib/hooks/x",
            "work/.git/modules/third/party/lib/modules/inner/config",
            "work/.git/worktrees/w/commondir=../..;",
            "work/.git/worktrees/w/gitdir",
            "work/sub/.git/HEAD",
            "work/sub/.git/commondir=../other;",
            "more/.git/HEAD",
            "more/.git/info/exclude",
        ]);
        bench.ground.more = vec![bench.ground.root.parent().unwrap().join("more")];
        let look = bench.ground.look();
        let policy = bench
            .ground
            .policy(&look, Tier::Full, &[Permission::GitWrite], false, None);
        assert!(policy.git_write);
        assert_eq!(bench.shown(&policy.writable), ["more", "work"]);
        assert_eq!(
            bench.shown(&policy.read_only),
            [
                "more/.git/info",
                "work/.git/config",
                "work/.git/hooks",
                "work/.git/info",
                "work/.git/modules/lib/config",
                "work/.git/modules/lib/hooks",
                "work/.git/modules/third/party/lib/hooks",
                "work/.git/modules/third/party/lib/modules/inner/config",
                "work/.git/worktrees/w/commondir",
                "work/.git/worktrees/w/gitdir",
                "work/sub/.git/commondir",
            ]
        );
        // What is not there is held by its name where a folder can stand for it, and missed elsewhere.
        let meaningful = bench.shown(&bench.ground.meaningful(&look, true));
        for name in [
            "work/.git/hooks",
            "work/.git/modules/third/party/lib/info",
            "work/sub/.git/hooks",
            "more/.git/hooks",
        ] {
            assert!(meaningful.iter().any(|it| it == name), "{name}: {meaningful:?}");
        }
        let opened = bench.ground.opened(&look);
        let fixed: Vec<_> = opened.iter().flat_map(|it| Fixed::of(it).paths).collect();
        let fixed = bench.shown(&fixed);
        for name in [
            "work/.git/commondir",
            "work/.git/config.worktree",
            "work/.git/worktrees/w/config.worktree",
            "work/.git/modules/lib/commondir",
            "more/.git/config",
        ] {
            assert!(fixed.iter().any(|it| it == name), "{name}: {fixed:?}");
        }
    }

    #[test]
    fn a_worktree_is_held_in_all_its_folders() {
        let mut bench = bench(&[
            "main/.git/HEAD",
            "main/.git/config",
            "main/.git/hooks/x",
            "main/.git/worktrees/w/HEAD",
            "main/.git/worktrees/w/commondir=../..;",
        ]);
        let base = bench.ground.root.parent().unwrap().to_owned();
        let text = format!("gitdir: {}\n", base.join("main/.git/worktrees/w").display());
        fs::write(bench.ground.root.join(".git"), text).unwrap();
        let held = bench.shown(&bench.policy(&[]).read_only);
        assert_eq!(held, ["main/.git", "main/.git/worktrees/w", "work/.git"]);
        // A command may have written that, unless it was there from the start or what it names says the same.
        let open = bench.policy(&[Permission::GitWrite]);
        assert_eq!(bench.shown(&open.writable), ["work"]);
        let gitdir = base.join("main/.git/worktrees/w/gitdir");
        for (back, expected) in [("elsewhere/.git", false), ("work/.git", true)] {
            fs::write(&gitdir, format!("{}\n", base.join(back).display())).unwrap();
            let open = bench.policy(&[Permission::GitWrite]);
            assert_eq!(bench.shown(&open.writable).len() == 3, expected, "{back}");
        }
        fs::remove_file(gitdir).unwrap();
        bench.ground.record();
        let open = bench.policy(&[Permission::GitWrite]);
        assert_eq!(
            bench.shown(&open.writable),
            ["main/.git", "main/.git/worktrees/w", "work"]
        );
        assert_eq!(
            bench.shown(&open.read_only),
            [
                "main/.git/config",
                "main/.git/hooks",
                "main/.git/worktrees/w/commondir",
                "work/.git"
            ]
        );
    }

    #[test]
    fn what_a_worktree_names_in_the_shared_git_folder_is_held() {
        let mut bench = bench(&[
            "main/.git/HEAD",
            "main/.git/own-hooks/pre-commit",
            "main/.git/real-hooks/pre-commit",
            "main/.git/more.cfg",
            "main/.git/tools/x.sh",
            "main/.git/worktrees/w/HEAD",
            "main/.git/worktrees/w/commondir=../..;",
            "home/info/attributes",
        ]);
        let base = bench.ground.root.parent().unwrap().to_owned();
        let git = base.join("main/.git");
        let config = format!(
            "[core]\n\thooksPath = {0}/own-hooks\n[include]\n\tpath = more.cfg\n\tpath = later.cfg\n[alias]\n\tx = !{0}/tools/x.sh\n",
            git.display()
        );
        fs::write(git.join("config"), config).unwrap();
        for (link, target) in [
            ("hooks", "real-hooks"),
            ("config.worktree", "not-there"),
            ("info", "../../home/info"),
        ] {
            std::os::unix::fs::symlink(target, git.join(link)).unwrap();
        }
        let text = format!("gitdir: {}\n", git.join("worktrees/w").display());
        fs::write(bench.ground.root.join(".git"), text).unwrap();
        bench.ground.record();
        let look = bench.ground.look();
        let open = bench
            .ground
            .policy(&look, Tier::Full, &[Permission::GitWrite], false, None);
        assert_eq!(
            bench.shown(&open.read_only),
            [
                "main/.git/config",
                "main/.git/config.worktree",
                "main/.git/hooks",
                "main/.git/info",
                "main/.git/more.cfg",
                "main/.git/own-hooks",
                "main/.git/real-hooks",
                "main/.git/tools/x.sh",
                "main/.git/worktrees/w/commondir",
                "work/.git",
            ]
        );
        // What is not there yet is missed, so that it is put aside once a command has made it.
        for name in ["later.cfg", "not-there"] {
            assert!(look.missing.contains(&git.join(name)), "{name}: {:?}", look.missing);
        }
        let meaningful = bench.ground.meaningful(&look, true);
        assert!(meaningful.contains(&git.join("not-there")), "{meaningful:?}");
    }

    #[test]
    fn what_a_command_wrote_opens_no_other_repository() {
        let bench = bench(&[
            "work/.git/HEAD",
            "other/.git/HEAD",
            "other/.git/config",
            // The submodule of a repository in the workspace.
            "work/module/.git=gitdir: ../.git/modules/module;",
            "work/.git/modules/module/HEAD",
        ]);
        let base = bench.ground.root.parent().unwrap().to_owned();
        let other = base.join("other/.git");
        let put = |path: &str, text: String| {
            let path = bench.ground.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        // Straight, and through folders of a worktree that a command makes up.
        put("x/.git", format!("gitdir: {}\n", other.display()));
        put(".git/worktrees/y/HEAD", "x".to_owned());
        put(".git/worktrees/y/commondir", format!("{}\n", other.display()));
        put(
            ".git/worktrees/y/gitdir",
            format!("{}\n", bench.ground.root.join("y/.git").display()),
        );
        put(
            "y/.git",
            format!("gitdir: {}\n", bench.ground.root.join(".git/worktrees/y").display()),
        );
        let open = bench.policy(&[Permission::GitWrite]);
        assert_eq!(bench.shown(&open.writable), ["work"]);
        let folders = bench.ground.opened(&bench.ground.look());
        assert_eq!(
            bench.shown(&folders.into_iter().collect::<Vec<_>>()),
            ["work/.git", "work/.git/modules/module", "work/.git/worktrees/y"]
        );
    }

    #[test]
    fn a_folder_that_git_is_said_to_be_in_is_not_opened() {
        let bench = bench(&["home/x", "elsewhere/HEAD"]);
        let base = bench.ground.root.parent().unwrap();
        for target in ["home", "elsewhere"] {
            let text = format!("gitdir: {}\n", base.join(target).display());
            fs::write(bench.ground.root.join(".git"), text).unwrap();
            let open = bench.policy(&[Permission::GitWrite]);
            assert_eq!(bench.shown(&open.writable), ["work"], "{target}");
        }
    }

    #[test]
    fn a_link_hides_what_it_leads_to_and_nothing_that_others_need() {
        let bench = bench(&[
            "work/a.rs",
            "work/src/b.rs",
            "work/deep/x",
            "home/secret/key",
            "home/secret/deep/x",
        ]);
        let base = bench.ground.root.parent().unwrap().to_owned();
        let link = |target: &Path, name: &str| {
            let path = bench.ground.root.join(name);
            fs::remove_file(&path).ok();
            std::os::unix::fs::symlink(target, path).unwrap();
        };
        for name in [".env", "deep/server.key"] {
            for (target, expected) in [
                (base.join("home/secret/key"), vec!["home/secret/key"]),
                ("/".into(), vec![]),
                ("/tmp".into(), vec![]),
                ("/dev".into(), vec![]),
                ("/proc/self".into(), vec![]),
                ("/usr".into(), vec![]),
                (base.clone(), vec![]),
                (bench.ground.root.clone(), vec![]),
                (base.join("home/secret"), vec![]),
                (base.join("nowhere"), vec![]),
                (bench.ground.root.join("src"), vec!["work/src"]),
                (bench.ground.root.join("a.rs"), vec!["work/a.rs"]),
                (name.rsplit('/').next().unwrap().into(), vec![]),
            ] {
                link(&target, name);
                let policy = bench.policy(&[]);
                assert_eq!(bench.shown(&policy.hidden), expected, "{name} {}", target.display());
                // Another link in its place would lead elsewhere.
                let is_held = policy.read_only.contains(&bench.ground.root.join(name));
                assert_eq!(is_held, !expected.is_empty(), "{name} {}", target.display());
                assert_eq!(bench.shown(&policy.writable), ["work"]);
            }
            fs::remove_file(bench.ground.root.join(name)).unwrap();
        }
    }

    #[test]
    fn a_protected_link_is_held_with_the_links_that_it_leads_through() {
        let mut bench = bench(&["work/real/ci/x.yml", "more/hooks/pre-commit", "work/.github/x"]);
        let base = bench.ground.root.parent().unwrap().to_owned();
        bench.ground.more = vec![base.join("more")];
        for (link, target) in [
            ("work/.github/workflows", "../ci"),
            ("work/ci", "real/ci"),
            ("work/a/.husky", "../../more/hooks"),
            ("work/b/.vscode", ".."),
            ("work/b/.idea", "../later/idea"),
        ] {
            fs::create_dir_all(base.join(link).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, base.join(link)).unwrap();
        }
        let look = bench.ground.look();
        let policy = bench.ground.policy(&look, Tier::Full, &[], false, None);
        assert_eq!(
            bench.shown(&policy.read_only),
            [
                "more/hooks",
                "work/.github/workflows",
                "work/a/.husky",
                "work/b/.idea",
                "work/b/.vscode",
                "work/ci",
                "work/real/ci",
            ]
        );
        // What a link should lead to is held by its name.
        let later = bench.ground.root.join("later");
        assert!(bench.ground.meaningful(&look, false).contains(&later));
        assert!(look.missing.contains(&later.join("idea")));
    }

    #[test]
    fn what_links_in_gits_folder_lead_to_is_held_wherever_it_lies() {
        let bench = bench(&[
            "work/.git/HEAD",
            "work/.git/hooks/x.sample",
            "work/scripts/pre-commit",
            "work/scripts/other",
            "work/sub/.git/HEAD",
            "work/sub/hooks/x",
            "work/tools/run.sh",
            "work/scripts/config=[core];hooksPath = linked/hooks",
            "work/real/hooks/y",
            "home/hooks/x",
        ]);
        let root = bench.ground.root.clone();
        for (link, target) in [
            (".git/hooks/pre-commit", "../../scripts/pre-commit"),
            (".git/hooks/pre-push.d/one", "../../../../home/hooks"),
            (".git/info", "../later"),
            (".git/config", "../scripts/config"),
            ("sub/.git/hooks", "../hooks"),
            // Where a link leads there is another one.
            ("sub/hooks/deep/post-commit", "../../../tools/run.sh"),
            ("linked", "real"),
            ("../home/hooks/y", "../../work/scripts/other"),
        ] {
            let path = root.join(link);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, path).unwrap();
        }
        // Before the first look what the repositories at the top say is known.
        for (path, expected) in [("scripts/pre-commit", true), ("later/x", true), ("README", false)] {
            assert_eq!(bench.ground.is_led_to(&root.join(path), false), expected, "{path}");
        }
        let look = bench.ground.look();
        assert_eq!(look.limit(), None);
        let policy = bench.ground.policy(&look, Tier::Full, &[], false, None);
        let held = [
            "work/linked",
            "work/real/hooks",
            "work/scripts/config",
            "work/scripts/other",
            "work/scripts/pre-commit",
            "work/sub/.git",
            "work/sub/hooks",
            "work/tools/run.sh",
        ];
        assert_eq!(bench.shown(&policy.read_only), [&["work/.git"][..], &held].concat());
        assert!(look.missing.contains(&root.join("later")));
        for path in [
            "sub/hooks/pre-push",
            "tools/run.sh",
            "real/hooks/pre-push",
            "scripts/other",
        ] {
            assert!(bench.ground.is_led_to(&root.join(path), false), "{path}");
        }
        // Where git's folder may be written, the links in it are held one by one.
        let open = bench
            .ground
            .policy(&look, Tier::Full, &[Permission::GitWrite], false, None);
        let open = bench.shown(&open.read_only);
        for path in [
            "work/.git/hooks",
            "work/.git/config",
            "work/.git/info",
            "work/sub/.git/hooks",
        ] {
            assert!(open.iter().any(|it| it == path), "{path}: {open:?}");
        }
        assert!(
            held.iter()
                .all(|path| *path == "work/sub/.git" || open.iter().any(|it| it == path)),
            "{open:?}"
        );
        assert!(
            !open.iter().any(|it| it == "work/.git/hooks/pre-commit"),
            "its folder is: {open:?}"
        );
    }

    #[test]
    fn an_added_folder_in_what_is_hidden_stays_hidden() {
        let mut bench = bench(&["work/.sheafignore=private/", "work/private/sub/x"]);
        bench.ground.more = vec![bench.ground.root.join("private/sub")];
        let policy = bench.policy(&[]);
        assert_eq!(bench.shown(&policy.writable), ["work"]);
        assert_eq!(bench.shown(&policy.hidden), ["work/private"]);
    }

    #[test]
    fn what_any_repository_names_in_the_folders_is_held_or_missed() {
        let bench = bench(&[
            // The workspace lies below the top of a repository.
            ".git/config=[core];fsmonitor = ./work/bin/watch;hooksPath = work/hooks",
            "work/hooks/pre-commit",
            "work/sub/.git/config=[core];hooksPath = tools;sshCommand = ./absent.sh",
            "work/sub/tools/pre-push",
            "work/module/.git=gitdir: ../.git/modules/module",
            "work/.git/modules/module/config=[alias];x = !./run.sh",
            "work/module/run.sh",
        ]);
        let look = bench.ground.look();
        let shown = |paths: &BTreeSet<PathBuf>| bench.shown(&paths.iter().cloned().collect::<Vec<_>>());
        assert_eq!(shown(&look.named), ["work/module/run.sh", "work/sub/tools"]);
        assert_eq!(shown(&look.missing), ["work/sub/absent.sh"]);
        let policy = bench.ground.policy(&look, Tier::Full, &[], false, None);
        assert!(policy.read_only.contains(&bench.ground.root.join("sub/tools")));
        for (path, expected) in [("sub/tools/x", true), ("sub/absent.sh", true), ("sub/other.sh", false)] {
            let path = bench.ground.root.join(path);
            assert_eq!(bench.ground.is_named_by_git(&path), expected, "{}", path.display());
        }
        // Without a repository of its own, git works in the one above.
        fs::remove_dir_all(bench.ground.root.join(".git")).unwrap();
        let look = bench.ground.look();
        assert_eq!(shown(&look.named), ["work/hooks", "work/sub/tools"]);
        assert_eq!(shown(&look.missing), ["work/bin/watch", "work/sub/absent.sh"]);
    }
}
