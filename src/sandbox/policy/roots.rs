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
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
};

use super::{
    Policy, ResourceLimits, Tier,
    git_folders::pointed,
    hidden::{Secrets, Verdict},
    ignore_files::Scope,
    protected_names as name,
    resolve::resolve,
};
use crate::{protocol::Permission, text::WordList};

/// A survey looks at no more entries than this; what lies deeper than they reach is not protected one by one.
const MOST_ENTRIES: usize = 50_000;
/// Maximum number of ignored files that are protected from writing. More are build output.
const MOST_IGNORED: usize = 256;
/// Depth in git-ignored folders to which secrets are searched.
const DEPTH_IGNORED: usize = 2;
/// Parts of git's folder that run or decide what runs.
pub const GIT_FIXED: [&str; 4] = ["hooks", "config", "config.worktree", "info"];
/// Accounts of the machine's, which its administrator can read without any capability.
const OF_THE_MACHINE: WordList = WordList("/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers");
/// Folders in the home in which secrets of other programs lie beside things that are none.
const AT_HOME: [&str; 12] = [
    "",
    ".config",
    ".config/sheaf",
    ".local/share",
    ".cargo",
    ".docker",
    ".terraform.d",
    ".var/app",
    "snap",
    "Library",
    "Library/Application Support",
    "Library/Application Support/Google",
];

/// The folders of a conversation, as commands see them.
#[derive(Clone, Debug)]
pub struct Ground {
    pub root: PathBuf,
    pub more: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    pub secrets: Secrets,
    /// Files of this program that are nobody else's.
    pub own: Vec<PathBuf>,
}

/// Result of a walk over a folder.
#[derive(Debug, Default, PartialEq, Eq)]
struct Survey {
    protected: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    ignored: Vec<PathBuf>,
    /// True if the whole folder was seen.
    is_whole: bool,
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
        }
    }

    /// `temporary` becomes `/tmp`. What is only looked at may not be written at all.
    pub fn policy(&self, tier: Tier, permissions: &[Permission], only_reads: bool, temporary: Option<&Path>) -> Policy {
        let git_write = permissions.contains(&Permission::GitWrite);
        let roots: Vec<&PathBuf> = std::iter::once(&self.root).chain(&self.more).collect();
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
        for root in roots {
            let survey = self.survey(root);
            if !survey.is_whole {
                tracing::warn!(folder = %root.display(), "too many files to protect each of them");
            }
            policy.hidden.extend(survey.hidden);
            if only_reads {
                // It may lie below a folder that is covered.
                policy.read_only.push(root.clone());
                continue;
            }
            policy.writable.push(root.clone());
            for path in survey.protected {
                if git_write && path.file_name().is_some_and(name::is_git) {
                    open_git(&path, &mut policy);
                } else {
                    policy.read_only.extend(pointed(&path));
                    policy.read_only.push(path);
                }
            }
            policy.read_only.extend(survey.ignored);
        }
        policy
    }

    /// Names at the top of the workspace that mean something as soon as they exist, whether they do or not.
    pub fn meaningful(&self, git_write: bool) -> Vec<PathBuf> {
        let git = self.root.join(".git");
        let inside = ["hooks", "info"].into_iter().filter(|_| git_write && git.is_dir());
        let names = name::top_folders().map(|it| self.root.join(it));
        // A link that leads nowhere yet: whoever makes what it leads to fills what it is called.
        let led = linked(&self.root).into_iter().filter_map(|it| first_missing(&it));
        let led = led.filter(|it| it.starts_with(&self.root));
        names.chain(inside.map(|it| git.join(it))).chain(led).collect()
    }

    /// Secrets beside the workspace that are there.
    fn secrets_elsewhere(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = OF_THE_MACHINE.iter().map(PathBuf::from).collect();
        found.extend(self.secrets.doors().map(Path::to_owned));
        found.extend(self.own.iter().cloned());
        if let Some(home) = &self.home {
            for folder in AT_HOME {
                let entries = fs::read_dir(home.join(folder)).into_iter().flatten().flatten();
                let kept = entries
                    .map(|it| it.path())
                    .filter(|it| self.secrets.cover(it, it.is_dir()));
                found.extend(kept);
            }
            found.extend(self.secrets.named_at_home());
        }
        found.retain(|it| fs::symlink_metadata(it).is_ok());
        // A door is often reached by two names, one of which is a link.
        let mut found: Vec<_> = found.into_iter().map(|it| resolve(&it).unwrap_or(it)).collect();
        found.sort();
        found.dedup();
        // The folders that a command works in stay open, whatever they are called.
        let roots: Vec<&PathBuf> = std::iter::once(&self.root).chain(&self.more).collect();
        found.retain(|it| !roots.iter().any(|root| root.starts_with(it)));
        found
    }

    fn survey(&self, root: &Path) -> Survey {
        let mut survey = Survey {
            is_whole: true,
            ..Survey::default()
        };
        let scope = Scope { git: true, also: None };
        let verdict = Verdict::new(Some(root.to_owned()), self.secrets.clone(), scope);
        let mut open = VecDeque::from([Folder {
            path: root.to_owned(),
            ignored: 0,
            is_protected: false,
        }]);
        let mut count = 0;
        while let Some(folder) = open.pop_front() {
            let Ok(entries) = fs::read_dir(&folder.path) else {
                continue;
            };
            for entry in entries.flatten() {
                count += 1;
                if count > MOST_ENTRIES {
                    survey.is_whole = false;
                    return survey;
                }
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { continue };
                if verdict.is_hidden(&path, kind.is_dir()) {
                    // What a link leads to is what is secret.
                    survey.hidden.extend(resolve(&path).ok().filter(|it| it.exists()));
                    continue;
                }
                let inner = path.strip_prefix(root).unwrap_or(&path);
                let is_protected = folder.is_protected || name::is_protected(inner);
                if is_protected && !folder.is_protected {
                    survey.protected.push(path.clone());
                }
                if is_protected && kind.is_symlink() {
                    let target = resolve(&path).ok().filter(|it| it.starts_with(root) && it != root);
                    survey.protected.extend(target.filter(|it| it.exists()));
                }
                if kind.is_dir() {
                    // Nothing of the user's is in there but keys of git's own.
                    if name::is_git(&entry.file_name()) {
                        continue;
                    }
                    let is_out = folder.ignored > 0 || verdict.is_left_out(&path, true);
                    if is_out && folder.ignored >= DEPTH_IGNORED {
                        continue;
                    }
                    open.push_back(Folder {
                        path,
                        ignored: if is_out { folder.ignored + 1 } else { 0 },
                        is_protected,
                    });
                } else if kind.is_file()
                    && !is_protected
                    && folder.ignored == 0
                    && survey.ignored.len() < MOST_IGNORED
                    && verdict.is_left_out(&path, false)
                {
                    survey.ignored.push(path);
                }
            }
        }
        survey
    }
}

struct Folder {
    path: PathBuf,
    /// Depth below the first git-ignored folder.
    ignored: usize,
    is_protected: bool,
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

/// Lets git's folder be written, but for what runs or decides what runs.
fn open_git(git: &Path, policy: &mut Policy) {
    let mut folders = pointed(git);
    // Only what git itself would use: a file may name any folder.
    folders.retain(|it| it.components().any(|part| name::is_git(part.as_os_str())) && it.join("HEAD").is_file());
    if git.is_file() {
        policy.read_only.push(git.to_owned());
        policy.writable.extend(folders.iter().cloned());
    } else {
        folders.push(git.to_owned());
    }
    for folder in folders {
        let fixed = GIT_FIXED.map(|it| folder.join(it));
        policy.read_only.extend(fixed.into_iter().filter(|it| it.exists()));
        // The repositories of submodules have hooks of their own.
        let modules = fs::read_dir(folder.join("modules")).into_iter().flatten().flatten();
        for module in modules {
            let fixed = GIT_FIXED.map(|it| module.path().join(it));
            policy.read_only.extend(fixed.into_iter().filter(|it| it.exists()));
        }
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
        };
        Bench {
            _folder: folder,
            ground,
        }
    }

    impl Bench {
        fn policy(&self, permissions: &[Permission]) -> Policy {
            self.ground.policy(Tier::Full, permissions, false, None)
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
    fn git_may_be_written_but_for_what_runs() {
        let bench = bench(&[
            "work/.git/HEAD",
            "work/.git/config",
            "work/.git/hooks/pre-commit",
            "work/.git/info/attributes",
            "work/.git/objects/x",
            "work/.git/modules/lib/config",
            "work/.git/modules/lib/hooks/x",
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
            ]
        );
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
            ["main/.git/config", "main/.git/hooks", "work/.git"]
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
