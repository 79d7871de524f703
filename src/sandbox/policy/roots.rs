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
};

use super::{
    Policy, ResourceLimits, Tier,
    git_config::NamedFiles,
    git_folders::pointed,
    hidden::Secrets,
    protected_names as name,
    resolve::resolve,
    survey::{Survey, Surveys},
};
use crate::{protocol::Permission, text::WordList};

/// Parts of git's folder that run or decide what runs, or say where git finds those.
pub const GIT_FIXED: [&str; 5] = ["hooks", "config", "config.worktree", "info", "commondir"];
/// Maximum depth and number of folders below `modules` that are looked at: the name of a submodule may have slashes.
const MOST_MODULES: (usize, usize) = (8, 4096);
/// Accounts of the machine's, which its administrator can read without any capability.
const OF_THE_MACHINE: WordList = WordList("/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers");
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
    pub surveys: Surveys,
    pub named: NamedFiles,
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
            surveys: Surveys::default(),
            named: NamedFiles::default(),
        }
    }

    /// The workspace and the folders that the user added.
    pub fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.root).chain(&self.more)
    }

    /// Looks at all of it: a survey for each root, in their order. Whoever needs it several times at one moment looks once, because
    /// each look asks for every folder.
    pub fn look(&self) -> Vec<Survey> {
        self.roots().map(|it| self.surveys.look(it, &self.secrets)).collect()
    }

    /// Returns the protected paths that are in the folders of the conversation, by a look at them.
    pub fn protected(&self, seen: &[Survey]) -> BTreeSet<PathBuf> {
        let mut found: BTreeSet<PathBuf> = seen.iter().flat_map(|it| it.protected.iter().cloned()).collect();
        for root in self.roots() {
            found.extend(self.named_by_git(root).filter(|it| fs::symlink_metadata(it).is_ok()));
        }
        found.extend(
            self.globals
                .iter()
                .filter(|it| self.is_inside(it) && it.exists())
                .cloned(),
        );
        found
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

    /// What git's configuration names in a folder of the conversation.
    fn named_by_git(&self, root: &Path) -> impl Iterator<Item = PathBuf> {
        let named = self.named.look(root, self.home.as_deref());
        let roots: Vec<PathBuf> = self.roots().cloned().collect();
        // A folder that holds a root is nobody's to protect.
        let is_inside = move |it: &PathBuf| {
            roots.iter().any(|root| it.starts_with(root)) && !roots.iter().any(|root| root.starts_with(it))
        };
        named
            .iter()
            .filter(|it| is_inside(it))
            .cloned()
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Returns true if git's configuration names a path of the conversation's folders, or a folder on the way to it.
    pub fn is_named_by_git(&self, path: &Path) -> bool {
        let root = self.roots().find(|it| path.starts_with(it));
        root.is_some_and(|root| self.named_by_git(root).any(|it| path.starts_with(it)))
    }

    /// `temporary` becomes `/tmp`. What is only looked at may not be written at all.
    pub fn policy(
        &self,
        seen: &[Survey],
        tier: Tier,
        permissions: &[Permission],
        only_reads: bool,
        temporary: Option<&Path>,
    ) -> Policy {
        let git_write = permissions.contains(&Permission::GitWrite);
        let roots: Vec<&PathBuf> = self.roots().collect();
        let mut policy = Policy {
            tier,
            wraps: false,
            workspace: self.root.clone(),
            writable: Vec::new(),
            read_only: Vec::new(),
            hidden: self.secrets_elsewhere(),
            temporary: temporary.map(Path::to_owned),
            network: permissions.contains(&Permission::Network),
            git_write,
            limits: ResourceLimits::default(),
        };
        for (root, survey) in roots.into_iter().zip(seen) {
            if let Some(limit) = survey.limit {
                tracing::warn!(folder = %root.display(), ?limit, "not every file that should be protected was found");
            }
            // What a link leads to is what is secret.
            let hidden = survey.hidden.iter().filter_map(|it| resolve(it).ok());
            policy.hidden.extend(hidden.filter(|it| it.exists()));
            if only_reads {
                // It may lie below a folder that is covered.
                policy.read_only.push(root.clone());
                continue;
            }
            policy.writable.push(root.clone());
            let named = self.named_by_git(root).filter(|it| it.exists());
            for path in survey.protected.iter().cloned().chain(named) {
                let is_link = fs::symlink_metadata(&path).is_ok_and(|it| it.is_symlink());
                if is_link {
                    let target = resolve(&path).ok().filter(|it| it.starts_with(root) && it != root);
                    policy.read_only.extend(target.filter(|it| it.exists()));
                }
                if git_write && path.file_name().is_some_and(name::is_git) {
                    open_git(&path, &mut policy);
                } else {
                    policy.read_only.extend(pointed(&path));
                    policy.read_only.push(path);
                }
            }
            policy.read_only.extend(survey.ignored.iter().cloned());
            let kept = self.own.iter().chain(&self.globals);
            let kept = kept.filter(|it| it.starts_with(root) || root.starts_with(it));
            policy.read_only.extend(kept.filter(|it| it.exists()).cloned());
        }
        policy
    }

    /// Names at the top of the workspace that mean something as soon as they exist, whether they do or not.
    pub fn meaningful(&self, git_write: bool) -> Vec<PathBuf> {
        let git = self.root.join(".git");
        let inside = ["hooks", "info"].into_iter().filter(|_| git_write && git.is_dir());
        let names = self
            .roots()
            .flat_map(|root| name::top_folders().map(|it| root.join(it)));
        // A link that leads nowhere yet: whoever makes what it leads to fills what it is called.
        let led = self
            .roots()
            .flat_map(|it| linked(it))
            .filter_map(|it| first_missing(&it));
        let led = led.filter(|it| self.roots().any(|root| it.starts_with(root)));
        let own = self
            .own
            .iter()
            .filter_map(|it| first_missing(it))
            .filter(|it| self.is_inside(it));
        names
            .chain(inside.map(|it| git.join(it)))
            .chain(led)
            .chain(own)
            .collect()
    }

    /// What runs or decides what runs in the folders that `git_write` opens, whether it exists or not; and the folders that lie
    /// outside of the conversation's.
    pub fn fixed_by_git(&self, seen: &[Survey]) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut all, mut outside) = (Vec::new(), Vec::new());
        for folder in repositories(seen).flat_map(|it| openable(it)) {
            all.extend(fixed(&folder));
            if !self.is_inside(&folder) {
                outside.push(folder);
            }
        }
        (all, outside)
    }

    /// Secrets beside the workspace that are there.
    fn secrets_elsewhere(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = OF_THE_MACHINE.iter().map(PathBuf::from).collect();
        found.extend(self.secrets.doors().map(Path::to_owned));
        found.extend(self.secrets.at_home());
        found.retain(|it| fs::symlink_metadata(it).is_ok());
        // A door is often reached by two names, one of which is a link.
        let mut found: Vec<_> = found.into_iter().map(|it| resolve(&it).unwrap_or(it)).collect();
        found.sort();
        found.dedup();
        // The folders that a command works in stay open, whatever they are called.
        let roots: Vec<&PathBuf> = self.roots().collect();
        found.retain(|it| !roots.iter().any(|root| root.starts_with(it)));
        found
    }
}

/// Returns the targets of links at the top of `root` that have a protected name. The targets need not exist.
pub fn linked(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .filter(|it| it.file_type().is_ok_and(|it| it.is_symlink()))
        .filter(|it| name::is_protected(Path::new(&it.file_name())))
        .filter_map(|it| resolve(&it.path()).ok())
        .collect()
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

/// Git's folders, and the files that stand for them, in the folders of the conversation.
pub fn repositories(seen: &[Survey]) -> impl Iterator<Item = &PathBuf> {
    let protected = seen.iter().flat_map(|it| &it.protected);
    protected.filter(|it| it.file_name().is_some_and(name::is_git))
}

/// Git's own folders behind a `.git` that commands may be let write to.
fn openable(git: &Path) -> Vec<PathBuf> {
    if !git.is_file() {
        return vec![git.to_owned()];
    }
    // Only what git itself would use: a file may name any folder.
    let mut folders = pointed(git);
    folders.retain(|it| it.components().any(|part| name::is_git(part.as_os_str())) && it.join("HEAD").is_file());
    folders
}

/// Paths in a folder of git's that run or decide what runs, whether they exist or not: its own, and those of its submodules and
/// worktrees.
fn fixed(folder: &Path) -> Vec<PathBuf> {
    let mut fixed: Vec<PathBuf> = GIT_FIXED.iter().map(|it| folder.join(it)).collect();
    let below = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|it| it.file_type().is_ok_and(|it| it.is_dir()))
            .map(|it| it.path())
            .collect::<Vec<_>>()
    };
    for worktree in below(&folder.join("worktrees")) {
        fixed.extend(["config.worktree", "commondir"].map(|it| worktree.join(it)));
    }
    let mut open: Vec<_> = below(&folder.join("modules")).into_iter().map(|it| (it, 1)).collect();
    let mut count = 0;
    while let Some((module, depth)) = open.pop() {
        count += 1;
        if count > MOST_MODULES.1 {
            tracing::warn!(folder = %folder.display(), "not every repository of a submodule was looked at");
            break;
        }
        let is_repository = ["HEAD", "config", "hooks"].iter().any(|it| module.join(it).exists());
        if is_repository {
            fixed.extend(GIT_FIXED.iter().map(|it| module.join(it)));
            open.extend(below(&module.join("modules")).into_iter().map(|it| (it, depth + 1)));
        } else if depth < MOST_MODULES.0 {
            open.extend(below(&module).into_iter().map(|it| (it, depth + 1)));
        }
    }
    fixed
}

/// Lets git's folder be written, but for what runs or decides what runs.
fn open_git(git: &Path, policy: &mut Policy) {
    let folders = openable(git);
    if git.is_file() {
        policy.read_only.push(git.to_owned());
        policy.writable.extend(folders.iter().cloned());
    }
    for folder in folders {
        let there = fixed(&folder).into_iter().filter(|it| it.exists());
        let there: Vec<_> = there.filter(|it| !policy.read_only.contains(it)).collect();
        policy.read_only.extend(there);
        // A folder that holds only fixed parts must keep its name.
        policy.read_only.retain(|it| *it != folder);
    }
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
            surveys: Surveys::default(),
            named: NamedFiles::default(),
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
        let bench = bench(&[
            "work/.git/HEAD",
            "work/.git/config",
            "work/.git/hooks/pre-commit",
            "work/.git/info/attributes",
            "work/.git/objects/x",
            "work/.git/modules/lib/config",
            "work/.git/modules/lib/hooks/x",
            "work/.git/modules/third/party/lib/HEAD",
            "work/.git/modules/third/party/lib/hooks/x",
            "work/.git/worktrees/w/commondir",
        ]);
        let policy = bench.policy(&[Permission::GitWrite]);
        assert!(policy.git_write);
        assert_eq!(
            bench.shown(&policy.read_only),
            [
                "work/.git/config",
                "work/.git/hooks",
                "work/.git/info",
                "work/.git/modules/lib/config",
                "work/.git/modules/lib/hooks",
                "work/.git/modules/third/party/lib/hooks",
                "work/.git/worktrees/w/commondir",
            ]
        );
        let (fixed, outside) = bench.ground.fixed_by_git(&bench.ground.look());
        assert!(fixed.contains(&bench.ground.root.join(".git/commondir")), "{fixed:?}");
        assert_eq!(outside, Vec::<PathBuf>::new());
    }

    #[test]
    fn a_worktree_is_held_in_all_its_folders() {
        let bench = bench(&[
            "main/.git/HEAD",
            "main/.git/config",
            "main/.git/hooks/x",
            "main/.git/worktrees/w/HEAD",
            "main/.git/worktrees/w/commondir=../..;",
        ]);
        let base = bench.ground.root.parent().unwrap();
        let text = format!("gitdir: {}\n", base.join("main/.git/worktrees/w").display());
        fs::write(bench.ground.root.join(".git"), text).unwrap();
        let held = bench.shown(&bench.policy(&[]).read_only);
        assert_eq!(held, ["main/.git", "main/.git/worktrees/w", "work/.git"]);
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
    fn a_link_hides_what_it_leads_to() {
        let bench = bench(&["work/a.rs", "home/secret/key"]);
        let base = bench.ground.root.parent().unwrap();
        std::os::unix::fs::symlink(base.join("home/secret/key"), bench.ground.root.join(".env")).unwrap();
        assert_eq!(bench.shown(&bench.policy(&[]).hidden), ["home/secret/key"]);
    }
}
